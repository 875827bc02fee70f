{{/* One StatefulSet. Given: root, component, of (brokers or controllers of the values). */}}
{{- define "penstock.statefulset" -}}
{{- $name := include "penstock.name" .root -}}
{{- $isBroker := eq .component "broker" -}}
{{- $isCombined := and $isBroker (not .root.Values.controllers.separate) -}}
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {{ $name }}-{{ .component }}
  labels:
    {{- include "penstock.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  replicas: {{ .of.count }}
  serviceName: {{ $name }}-nodes
  # A quorum needs its voters before the first of them is ready. Rolling updates still go one by one.
  podManagementPolicy: Parallel
  updateStrategy:
    type: RollingUpdate
  # Records outlive the set.
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain, whenScaled: Retain}
  selector:
    matchLabels:
      {{- include "penstock.selector" .root | nindent 6 }}
      app.kubernetes.io/component: {{ .component }}
  template:
    metadata:
      labels:
        {{- include "penstock.labels" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .component }}
        {{- with .root.Values.podLabels }}{{ toYaml . | nindent 8 }}{{ end }}
      annotations:
        # Changed properties roll the pods.
        checksum/config: {{ include (print .root.Template.BasePath "/configmap.yaml") .root | sha256sum }}
        {{- with .root.Values.podAnnotations }}{{ toYaml . | nindent 8 }}{{ end }}
    spec:
      serviceAccountName: {{ include "penstock.serviceAccountName" .root }}
      automountServiceAccountToken: false
      # The variables that Kubernetes makes of a Service called penstock would be read as properties.
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ .root.Values.terminationGracePeriodSeconds }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 1000
        runAsGroup: 1000
        fsGroup: 1000
        fsGroupChangePolicy: OnRootMismatch
        seccompProfile: {type: RuntimeDefault}
      {{- with .root.Values.imagePullSecrets }}
      imagePullSecrets: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .root.Values.nodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .root.Values.tolerations }}
      tolerations: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .root.Values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- if ne .root.Values.antiAffinity "none" }}
      affinity:
        podAntiAffinity:
          {{- if eq .root.Values.antiAffinity "hard" }}
          requiredDuringSchedulingIgnoredDuringExecution:
            - topologyKey: kubernetes.io/hostname
              labelSelector:
                matchLabels:
                  {{- include "penstock.selector" .root | nindent 18 }}
                  app.kubernetes.io/component: {{ .component }}
          {{- else }}
          preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 100
              podAffinityTerm:
                topologyKey: kubernetes.io/hostname
                labelSelector:
                  matchLabels:
                    {{- include "penstock.selector" .root | nindent 20 }}
                    app.kubernetes.io/component: {{ .component }}
          {{- end }}
      {{- end }}
      {{- with .root.Values.topologyKey }}
      topologySpreadConstraints:
        - topologyKey: {{ . }}
          maxSkew: 1
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- include "penstock.selector" $.root | nindent 14 }}
              app.kubernetes.io/component: {{ $.component }}
      {{- end }}
      containers:
        - name: penstock
          image: "{{ .root.Values.image.repository }}:{{ default .root.Chart.AppVersion .root.Values.image.tag }}"
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          args: [/etc/penstock/server.properties]
          env:
            - name: POD_NAME
              valueFrom: {fieldRef: {fieldPath: metadata.name}}
            - name: HOST_IP
              valueFrom: {fieldRef: {fieldPath: status.hostIP}}
            - name: PENSTOCK_CLUSTER_SECRET
              valueFrom: {secretKeyRef: {name: {{ include "penstock.secretName" .root }}, key: cluster-secret}}
            # What of these differs between the pods, the entry point takes from the ordinal in the pod's name.
            - {name: NODE_ID_BASE, value: {{ .of.firstId | quote }}}
            - name: PENSTOCK_LOG_DIRS
              value: {{ include "penstock.logDirs" .of | quote }}
            {{- if $isBroker }}
            - name: PENSTOCK_LISTENERS
              value: INSIDE://:9092{{ if .root.Values.outside.enabled }},OUTSIDE://:9094{{ end }}
            - name: PENSTOCK_ADVERTISED_LISTENERS
              value: INSIDE://$(POD_NAME).{{ include "penstock.domain" .root }}:9092
            - {name: CONTROLLER_COUNT, value: {{ ternary .root.Values.controllers.count 0 $isCombined | quote }}}
            - {name: CONTROLLER_LISTENER, value: "CONTROLLER://:9093"}
            {{- if .root.Values.outside.enabled }}
            - name: ADVERTISED_BY_ORDINAL
              value: {{ include "penstock.outsideAddresses" .root | quote }}
            {{- end }}
            {{- else }}
            - {name: PENSTOCK_PROCESS_ROLES, value: controller}
            - {name: PENSTOCK_LISTENERS, value: "CONTROLLER://:9093"}
            {{- end }}
            - name: PENSTOCK_ADMIN_ADVERTISED_LISTENERS
              value: http://$(POD_NAME).{{ include "penstock.domain" .root }}:9644
            {{- with .root.Values.environment }}{{ toYaml . | nindent 12 }}{{ end }}
          ports:
            {{- if $isBroker }}
            - {name: inside, containerPort: 9092}
            {{- if .root.Values.outside.enabled }}
            - {name: outside, containerPort: 9094}
            {{- end }}
            {{- end }}
            {{- if or (not $isBroker) $isCombined }}
            - {name: controller, containerPort: 9093}
            {{- end }}
            - {name: http, containerPort: 9644}
          {{- if and $isBroker .root.Values.drain.enabled (gt (int .root.Values.brokers.count) 1) }}
          # Its leaderships go to others while it still serves, and it waits for replicas that others need it for. The next
          # process ends the drain. SIGTERM, a controlled shutdown, comes after this whatever its status is.
          lifecycle:
            preStop:
              exec:
                command:
                  - /bin/sh
                  - -c
                  - >-
                    exec penstock drain "$((NODE_ID_BASE + ${POD_NAME##*-}))" --until-restart --wait
                    --deadline {{ .root.Values.drain.deadlineSeconds }} --admin http://127.0.0.1:9644
          {{- end }}
          # A node that recovers its logs after a crash is alive all the time: it has ten minutes for that.
          startupProbe:
            httpGet: {path: /health, port: http}
            periodSeconds: 5
            failureThreshold: 120
            timeoutSeconds: 4
          # Slow to restart a node: that costs its caches and moves leaders. Quick to send no clients to it.
          livenessProbe:
            httpGet: {path: /health, port: http}
            periodSeconds: 10
            failureThreshold: 6
            timeoutSeconds: 5
          readinessProbe:
            httpGet: {path: /ready, port: http}
            periodSeconds: 5
            failureThreshold: 2
            timeoutSeconds: 4
          {{- with .of.resources }}
          resources: {{- toYaml . | nindent 12 }}
          {{- end }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
          volumeMounts:
            - {name: data, mountPath: /var/lib/penstock}
            {{- range $number := untilStep 2 (int (add .of.storage.volumes 1)) 1 }}
            - {name: data-{{ $number }}, mountPath: /var/lib/penstock-{{ $number }}}
            {{- end }}
            - {name: properties, mountPath: /etc/penstock, readOnly: true}
            - {name: temporary, mountPath: /tmp}
      volumes:
        - name: properties
          configMap: {name: {{ $name }}}
        - name: temporary
          emptyDir: {}
  volumeClaimTemplates:
    {{- range $number := untilStep 1 (int (add .of.storage.volumes 1)) 1 }}
    - apiVersion: v1
      kind: PersistentVolumeClaim
      metadata:
        name: {{ ternary "data" (printf "data-%d" $number) (eq $number 1) }}
      spec:
        accessModes: {{- toYaml $.of.storage.accessModes | nindent 10 }}
        {{- with $.of.storage.className }}
        storageClassName: {{ . }}
        {{- end }}
        resources:
          requests: {storage: {{ $.of.storage.size }}}
    {{- end }}
{{- end -}}
