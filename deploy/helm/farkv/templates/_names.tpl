{{- /* That of Services too, which begin with a letter and have no dots. */ -}}
{{- define "farkv.name" -}}
{{- $name := .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) }}{{ fail (printf "the release %q is to be called by a letter, then letters, digits and -" $name) }}{{ end -}}
{{ $name }}
{{- end -}}

{{- define "farkv.labels" -}}
app: {{ include "farkv.name" . }}
{{- end -}}

{{- /* Each server on a node of its own, unless the values say how pods stand to each other. */ -}}
{{- define "farkv.affinity" -}}
{{- if not (hasKey .Values.affinity "podAntiAffinity") -}}
podAntiAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    - topologyKey: kubernetes.io/hostname
      labelSelector:
        matchLabels: { {{- include "farkv.labels" . -}} }
{{ end -}}
{{- with .Values.affinity }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{- /* All servers of the first start: id=host:port, with commas. */ -}}
{{- define "farkv.peers" -}}
{{- $name := include "farkv.name" . -}}
{{- range $i := until (int .Values.servers) -}}
{{- if $i }},{{ end }}{{ $name }}-{{ $i }}={{ $name }}-{{ $i }}.{{ $name }}-servers:9400
{{- end -}}
{{- end -}}

{{- /* Those of the values, and the network that Multus attaches for RDMA. */ -}}
{{- define "farkv.podAnnotations" -}}
{{- $networks := "k8s.v1.cni.cncf.io/networks" -}}
{{- with .Values.rdma.network -}}
{{- if not $.Values.rdma.resource }}{{ fail "rdma.network: rdma.resource names no device of that network" }}{{ end -}}
{{- if hasKey $.Values.podAnnotations $networks }}{{ fail (printf "podAnnotations: rdma.network settles %s" $networks) }}{{ end -}}
{{ $networks }}: {{ . | quote }}
{{ end -}}
{{- with .Values.podAnnotations }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{- /* The milliseconds of a time of options, as the server reads it: 500, 500ms, 2s. */ -}}
{{- define "farkv.ms" -}}
{{- $text := .text | toString | trim | lower -}}
{{- if not (regexMatch `^[0-9]+(\.[0-9]+)?\s*(ms|s|m|h)?$` $text) -}}
{{- fail (printf "options: %s: %q is not a time such as 500ms or 2s" .name $text) -}}
{{- end -}}
{{- $unit := get (dict "" 1 "ms" 1 "s" 1000 "m" 60000 "h" 3600000) (regexFind `[a-z]*$` $text) -}}
{{- mulf (regexFind `^[0-9.]+` $text | float64) $unit | int64 -}}
{{- end -}}

{{- /* A server that stops waits for others within drain-ms, then for leases; without drain-ms both last the same. */ -}}
{{- define "farkv.graceSeconds" -}}
{{- $leaseMs := include "farkv.ms" (dict "name" "lease-ms" "text" (get .Values.options "lease-ms" | default "2000")) | int64 -}}
{{- $leasesMs := add (mul 2 $leaseMs) 1000 -}}
{{- $drainMs := include "farkv.ms" (dict "name" "drain-ms" "text" (get .Values.options "drain-ms" | default (toString $leasesMs))) | int64 -}}
{{- $marginMs := 5000 -}}
{{- $seconds := div (add $drainMs $leasesMs $marginMs 999) 1000 -}}
{{- if lt (int64 .Values.terminationGraceSeconds) $seconds -}}
{{- fail (printf "terminationGraceSeconds: a server may take %d s to stop with this drain-ms and lease-ms: set it to that at least" $seconds) -}}
{{- end -}}
{{- int64 .Values.terminationGraceSeconds -}}
{{- end -}}
