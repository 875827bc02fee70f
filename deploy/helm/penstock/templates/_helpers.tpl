{{/* Names */}}
{{- define "penstock.name" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{ $full | trunc 40 | trimSuffix "-" }}
{{- end -}}

{{- define "penstock.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "penstock.labels" -}}
{{ include "penstock.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "penstock.secretName" -}}
{{ default (include "penstock.name" .) .Values.cluster.existingSecret }}
{{- end -}}

{{- define "penstock.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "penstock.name" .) .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end -}}

{{/* The domain in which each pod has a name. */}}
{{- define "penstock.domain" -}}
{{ printf "%s-nodes.%s.svc.%s" (include "penstock.name" .) .Release.Namespace .Values.cluster.domain }}
{{- end -}}

{{/* controller.quorum.voters, from the ordinals of the pods that are controllers. */}}
{{- define "penstock.voters" -}}
{{- $set := printf "%s-%s" (include "penstock.name" .) (ternary "controller" "broker" .Values.controllers.separate) -}}
{{- $first := ternary .Values.controllers.firstId .Values.brokers.firstId .Values.controllers.separate | int -}}
{{- $voters := list -}}
{{- range $ordinal := until (int .Values.controllers.count) -}}
{{- $voters = append $voters (printf "%d@%s-%d.%s:9093" (add $first $ordinal) $set $ordinal (include "penstock.domain" $)) -}}
{{- end -}}
{{ join "," $voters }}
{{- end -}}

{{/* log.dirs: one on each volume of a node. Given: brokers or controllers of the values. */}}
{{- define "penstock.logDirs" -}}
{{- $directories := list "/var/lib/penstock/data" -}}
{{- range $number := untilStep 2 (int (add .storage.volumes 1)) 1 -}}
{{- $directories = append $directories (printf "/var/lib/penstock-%d/data" $number) -}}
{{- end -}}
{{ join "," $directories }}
{{- end -}}

{{/* What each broker advertises to clients outside, in the order of the ordinals. */}}
{{- define "penstock.outsideAddresses" -}}
{{- $addresses := list -}}
{{- range $ordinal := until (int .Values.brokers.count) -}}
{{- $host := default "$(HOST_IP)" $.Values.outside.host | replace "{ordinal}" (toString $ordinal) -}}
{{- $port := ternary (add $.Values.outside.firstNodePort $ordinal) $.Values.outside.port (eq $.Values.outside.type "NodePort") -}}
{{- $addresses = append $addresses (printf "OUTSIDE://%s:%d" $host (int $port)) -}}
{{- end -}}
{{ join " " $addresses }}
{{- end -}}

{{- define "penstock.checks" -}}
{{- if and .Values.drain.enabled (gt (add .Values.drain.deadlineSeconds 60) (int .Values.terminationGracePeriodSeconds)) -}}
{{- fail (printf "drain.deadlineSeconds is %d, and terminationGracePeriodSeconds %d: a minute of it has to be left for the controlled shutdown" (int .Values.drain.deadlineSeconds) (int .Values.terminationGracePeriodSeconds)) -}}
{{- end -}}
{{- if and (not .Values.controllers.separate) (gt (int .Values.controllers.count) (int .Values.brokers.count)) -}}
{{- fail (printf "controllers.count is %d, but there are only %d brokers; take more of them, or controllers.separate" (int .Values.controllers.count) (int .Values.brokers.count)) -}}
{{- end -}}
{{- if .Values.controllers.separate -}}
{{- $last := add .Values.brokers.firstId .Values.brokers.count -1 -}}
{{- $lastController := add .Values.controllers.firstId .Values.controllers.count -1 -}}
{{- if and (le (int .Values.controllers.firstId) (int $last)) (le (int .Values.brokers.firstId) (int $lastController)) -}}
{{- fail "brokers and controllers share a node id: controllers.firstId and brokers.firstId are too close" -}}
{{- end -}}
{{- end -}}
{{- end -}}
