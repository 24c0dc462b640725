{{- define "farkv.name" -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end -}}

{{- define "farkv.labels" -}}
app: {{ include "farkv.name" . }}
{{- end -}}

{{- /* All servers of the first start: id=host:port, with commas. */ -}}
{{- define "farkv.peers" -}}
{{- $name := include "farkv.name" . -}}
{{- range $i := until (int .Values.servers) -}}
{{- if $i }},{{ end }}{{ $name }}-{{ $i }}={{ $name }}-{{ $i }}.{{ $name }}-servers:9400
{{- end -}}
{{- end -}}

{{- /* Those of the values, and the network that Multus attaches for SR-IOV. */ -}}
{{- define "farkv.podAnnotations" -}}
{{- $networks := "k8s.v1.cni.cncf.io/networks" -}}
{{- with .Values.rdma.network -}}
{{- if not $.Values.rdma.resource }}{{ fail "rdma.network: rdma.resource names no device of that network" }}{{ end -}}
{{- if hasKey $.Values.podAnnotations $networks }}{{ fail (printf "podAnnotations: rdma.network settles %s" $networks) }}{{ end -}}
{{ $networks }}: {{ . | quote }}
{{ end -}}
{{- with .Values.podAnnotations }}{{ toYaml . }}{{ end -}}
{{- end -}}
