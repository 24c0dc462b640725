{{- /* The bytes of a quantity of Kubernetes: 2Gi, 1.5G, 2147483648. Fails with the name of the value. */ -}}
{{- define "farkv.bytes" -}}
{{- $units := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- $text := .text | toString -}}
{{- $number := regexFind `^\.?[0-9][0-9.]*([eE][+-]?[0-9]+)?` $text -}}
{{- $unit := trimPrefix $number $text -}}
{{- if or (not $number) (not (hasKey $units $unit)) -}}
{{- fail (printf "%s: %q is not an amount of memory such as 2Gi, 2G or 2147483648" .name $text) -}}
{{- end -}}
{{- mulf ($number | float64) (get $units $unit) | int64 -}}
{{- end -}}

{{- /* The memory of the values. Fails where the container's limit is below what docs/kubernetes.md, Memory, adds up. */ -}}
{{- define "farkv.memory" -}}
{{- $limits := .Values.resources.limits | default dict -}}
{{- with $limits.memory -}}
{{- $limit := include "farkv.bytes" (dict "name" "resources.limits.memory" "text" .) | int64 -}}
{{- /* The server reads 1.5gb, 1.5gib and 1.5g as 1.5Gi; the schema lets nothing else through. */ -}}
{{- $size := printf "%si" (regexFind `^[0-9.]+[kmgt]` $.Values.memory | upper) -}}
{{- $tables := include "farkv.bytes" (dict "name" "memory" "text" $size) | int64 -}}
{{- $mib := 1048576 -}}
{{- $records := max (div $tables 16) (mul 8 $mib) -}}
{{- $threads := mul $.Values.dataPlaneThreads 128 $mib -}}
{{- $process := mul 128 $mib -}}
{{- $needed := add $tables $records $threads $process -}}
{{- if gt $needed $limit -}}
{{- $most := printf "%dMi" (div (add $needed $mib -1) $mib) -}}
{{- fail (printf "memory: a server with memory %s and %d dataPlaneThreads takes up to %s, and resources.limits.memory is %v: raise the limit to %s, or lower memory" $.Values.memory (int $.Values.dataPlaneThreads) $most . $most) -}}
{{- end -}}
{{- end -}}
{{- .Values.memory -}}
{{- end -}}
