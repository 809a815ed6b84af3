import type { KubernetesPool } from '../../../../core/models/kubernetes-pool.ts'
import { PoolSettings } from '../../../../core/models/pools.ts'
import { podManifest, podName } from '../../../../gpu/launcher/kubernetes/pod-manifest.ts'

const settings = PoolSettings.parse({
  kind: 'kubernetes',
  card_memory: '80GiB',
  volumes: [{ claim: 'models', mount_path: '/models' }],
}) as KubernetesPool

/** A launch id by its number. */
export const numberedLaunch = (number: number): string => `wkr_${number}-1`

/**
 * A pod of an engine as a cluster answers it, of 6 kB: with what Kubernetes adds, and who has set which field. Its containers
 * have not started.
 */
export function realisticPod(number: number, { serverId, namespace }: { serverId: string; namespace: string }): object {
  const launchId = numberedLaunch(number)
  const pod = podManifest({
    settings,
    serverId,
    namespace,
    options: {
      launchId,
      engineId: `wkr_${number}`,
      modelId: `model-${number % 500}`,
      argv: ['vllm', 'serve', `/models/model-${number % 500}`, '--port', '{port}', '--gpu-memory-utilization', '0.92'],
      channel: 'port',
      env: { HF_HOME: '/cache', VLLM_API_KEY: 'x', VLLM_LOGGING_LEVEL: 'INFO', HF_HUB_OFFLINE: '1' },
      visibleDevices: {},
      sandbox: { level: 'none', required: false, read: [], write: [], network: 'full' } as never,
    },
    needs: { nodes: 1, cards: 4, cpus: 16, memoryBytes: 2 ** 34, maxMs: null },
    image: { name: 'vllm/vllm-openai:v0.32.0' },
    ports: { wrapper: 20_001, engine: 20_002 },
    key: { certificate: '', key: '' },
    wrapper: '',
  }) as {
    metadata: Record<string, unknown>
    spec: Record<string, unknown> & { containers: { name: string; image: string }[] }
  }
  const at = '2026-11-28T10:00:00Z'
  const uid = `11111111-2222-4333-8444-${String(number).padStart(12, '0')}`
  const owned = Object.fromEntries(
    pod.spec.containers.map(container => [
      `k:{"name":"${container.name}"}`,
      Object.fromEntries([['.', {}], ...Object.keys(container).map(key => [`f:${key}`, { '.': {}, 'f:any': {} }])]),
    ]),
  )
  const condition = (type: string, status: string) => ({
    type,
    status,
    observedGeneration: 1,
    lastProbeTime: null,
    lastTransitionTime: at,
  })
  const conditions = ['Initialized', 'PodScheduled', 'PodReadyToStartContainers'].map(type => condition(type, 'True'))
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      name: podName(launchId),
      uid,
      creationTimestamp: at,
      generation: 1,
      managedFields: [
        {
          manager: 'infer',
          operation: 'Update',
          apiVersion: 'v1',
          time: at,
          fieldsType: 'FieldsV1',
          fieldsV1: {
            'f:metadata': {
              'f:annotations': { '.': {}, 'f:infer/engine': {}, 'f:infer/model': {} },
              'f:labels': { '.': {} },
            },
            'f:spec': { 'f:containers': owned, 'f:enableServiceLinks': {}, 'f:restartPolicy': {}, 'f:tolerations': {} },
          },
        },
        {
          manager: 'kubelet',
          operation: 'Update',
          apiVersion: 'v1',
          time: at,
          fieldsType: 'FieldsV1',
          fieldsV1: {
            'f:status': {
              'f:conditions': Object.fromEntries(
                conditions.map(({ type }) => [
                  `k:{"type":"${type}"}`,
                  { '.': {}, 'f:lastProbeTime': {}, 'f:lastTransitionTime': {}, 'f:status': {}, 'f:type': {} },
                ]),
              ),
              'f:containerStatuses': {},
              'f:podIP': {},
              'f:podIPs': { '.': {}, 'k:{"ip":"10.0.0.1"}': { '.': {}, 'f:ip': {} } },
            },
          },
          subresource: 'status',
        },
      ],
    },
    spec: {
      ...pod.spec,
      nodeName: `node-${number % 64}`,
      dnsPolicy: 'ClusterFirst',
      schedulerName: 'default-scheduler',
      priority: 0,
      preemptionPolicy: 'PreemptLowerPriority',
    },
    status: {
      phase: 'Running',
      qosClass: 'Burstable',
      hostIP: '192.168.1.7',
      podIP: `10.0.${number >> 8}.${number & 255}`,
      podIPs: [{ ip: `10.0.${number >> 8}.${number & 255}` }],
      startTime: at,
      conditions,
      containerStatuses: pod.spec.containers.map(({ name, image }) => ({
        name,
        image,
        imageID: `docker.io/${image}@sha256:${'0123456789abcdef'.repeat(4)}`,
        containerID: `containerd://${'0123456789abcdef'.repeat(4)}`,
        lastState: {},
        ready: false,
        restartCount: 0,
        started: false,
        state: { waiting: { reason: 'ContainerCreating' } },
      })),
    },
  }
}
