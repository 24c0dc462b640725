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
