import type { KubernetesPool } from '../../../core/models/pools.ts'
import { folderVariable } from '../environment.ts'
import type { LaunchKey } from '../launch-key.ts'
import type { LaunchNeeds, LaunchOptions } from '../launcher.ts'
import type { OwnerReference } from './deadline-job.ts'
import { containers, labels } from './pod-state.ts'

/** The resource of pods that belong together, which a cluster may have, and the variables that its controller gives them. */
export const leaderWorkerSets = {
  group: 'leaderworkerset.x-k8s.io',
  resource: 'leaderworkersets',
  kind: 'LeaderWorkerSet',
  address: 'LWS_LEADER_ADDRESS',
  rank: 'LWS_WORKER_INDEX',
} as const

/** Folders in the containers: of the wrapper alone, and of the engine, whose socket the wrapper sees. */
const wrapperFolder = '/run/infer/wrapper'
const engineFolder = '/run/infer/engine'
const socketPath = `${engineFolder}/s`

/** Seconds: how often Kubernetes looks for the wrapper, how late it begins, and for how long it may be away. */
const probe = { periodSeconds: 2, initialDelaySeconds: 10, timeoutSeconds: 2, failureThreshold: 3 }
/** Seconds for which a pod stays on a node that does not answer. */
const lostNodeSeconds = 60

/** Ports of a pod, of which only the wrapper's can be reached from outside of it. */
export interface PodPorts {
  wrapper: number
  engine: number
  /** Where the parts of an engine that spans nodes meet, on the first one. */
  meeting?: number
}

export interface PodPlan {
  settings: KubernetesPool
  serverId: string
  namespace: string
  options: LaunchOptions
  needs: LaunchNeeds
  image: { name: string; program?: string | undefined }
  ports: PodPorts
  key: LaunchKey
  /** The program of the wrapper. */
  wrapper: string
  /** Nodes on which it should not run if another has what it needs; absent: none. */
  avoid?: readonly string[]
}

/** The name of the pod of a launch, and of its secret: launch ids have other characters than names. */
export const podName = (launchId: string): string => `infer-${launchId.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`

/** The names of the pods of a launch that spans nodes, as the controller of its LeaderWorkerSet gives them. */
export const partNames = (launchId: string, nodes: number): string[] =>
  Array.from({ length: nodes }, (_, rank) => `${podName(launchId)}-0${rank === 0 ? '' : `-${rank}`}`)

/** The name of the StatefulSet that makes such a pod: one makes the first, and another the others. */
export const partSetName = (launchId: string, rank: number): string => `${podName(launchId)}${rank === 0 ? '' : '-0'}`

/** Texts of a pod in which `$` begins a reference to a variable. */
const literal = (text: string): string => text.replaceAll('$', '$$$$')

/** Variables of the engine: all are kept in the secret, as any may be one. */
function variablesOf({ options, needs }: PodPlan): Record<string, string> {
  return {
    LANG: 'C.UTF-8',
    HOME: engineFolder,
    [folderVariable]: engineFolder,
    VLLM_HOST_IP: '127.0.0.1',
    OMP_WAIT_POLICY: 'PASSIVE',
    // Many images ask for all GPUs of their node, also where a pod has none.
    ...(needs.cards === 0 && { NVIDIA_VISIBLE_DEVICES: 'void' }),
    ...options.env,
  }
}

/** The secret of a launch: what the wrapper and the engine must know and nobody else may read. Pure. */
export function secretManifest(plan: PodPlan): object {
  const { settings, serverId, namespace, options, ports, key, wrapper } = plan
  const own = {
    port: ports.wrapper,
    target: options.channel === 'socket' ? socketPath : ports.engine,
    orphanSeconds: settings.orphan_grace / 1_000,
  }
  const variables = Object.entries(variablesOf(plan)).map(([name, value]) => [`env.${name}`, value])
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: podName(options.launchId),
      namespace,
      labels: { [labels.server]: serverId, [labels.launch]: options.launchId },
    },
    type: 'Opaque',
    stringData: {
      'wrapper.py': wrapper,
      'settings.json': JSON.stringify(own),
      'certificate.pem': key.certificate,
      'key.pem': key.key,
      ...Object.fromEntries(variables),
    },
  }
}

/** The pod of a launch: the engine, and the wrapper that lets only its server reach it. Pure. */
export function podManifest(plan: PodPlan): object {
  const { name, namespace, ...named } = metadataOf(plan)
  const { maxMs } = plan.needs
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, ...named },
    spec: {
      // A launch runs once: after its end the server decides where the next one goes.
      restartPolicy: 'Never',
      ...(maxMs !== null && { activeDeadlineSeconds: Math.max(1, Math.ceil(maxMs / 1_000)) }),
      ...podSpec(plan),
      containers: [wrapperContainer(plan), engineContainer(plan)],
    },
  }
}

function affinityOf({ avoid = [] }: PodPlan): object {
  if (avoid.length === 0) return {}
  // Each may name one node only.
  const matchFields = avoid.map(node => ({ key: 'metadata.name', operator: 'NotIn', values: [node] }))
  const preferred = [{ weight: 100, preference: { matchFields } }]
  return { affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred } } }
}

/**
 * The LeaderWorkerSet of a launch that spans nodes: a pod on each, of which the first has the wrapper. `owner`: with which it is
 * deleted. Pure.
 */
export function setManifest(plan: PodPlan, owner: OwnerReference | undefined): object {
  const { name, namespace, ...named } = metadataOf(plan)
  // It allows no other policy than to start containers again.
  const template = (own: object, ...parts: object[]) => ({
    metadata: named,
    spec: { restartPolicy: 'Always', ...own, containers: parts },
  })
  return {
    apiVersion: `${leaderWorkerSets.group}/v1`,
    kind: leaderWorkerSets.kind,
    metadata: { name, namespace, ...named, ...(owner && { ownerReferences: [owner] }) },
    spec: {
      replicas: 1,
      startupPolicy: 'LeaderCreated',
      leaderWorkerTemplate: {
        size: plan.needs.nodes,
        restartPolicy: 'None',
        leaderTemplate: template(podSpec(plan), wrapperContainer(plan), engineContainer(plan)),
        workerTemplate: template(podSpec(plan, false), otherContainer(plan)),
      },
    },
  }
}

/** By what the objects of a launch are found. */
export function metadataOf({
  serverId,
  namespace,
  options: { launchId, engineId, modelId },
}: Pick<PodPlan, 'serverId' | 'namespace'> & {
  options: Pick<LaunchOptions, 'launchId' | 'engineId' | 'modelId'>
}) {
  return {
    name: podName(launchId),
    namespace,
    labels: { [labels.server]: serverId, [labels.launch]: launchId, 'app.kubernetes.io/managed-by': 'infer' },
    annotations: {
      'infer/engine': engineId,
      'infer/model': modelId,
      'kubectl.kubernetes.io/default-container': containers.engine,
    },
  }
}

/** What pods of a launch have besides their containers. Without a wrapper they do not get its key. */
function podSpec(plan: PodPlan, hasWrapper = true): object {
  const { settings, options } = plan
  const { service_account: account, image_pull_secrets: pullSecrets, volumes } = settings
  return {
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: 30,
    ...(account !== undefined && { serviceAccountName: account }),
    ...(pullSecrets.length > 0 && { imagePullSecrets: pullSecrets.map(one => ({ name: one })) }),
    nodeSelector: settings.node_selector,
    ...affinityOf(plan),
    tolerations: [
      ...settings.tolerations,
      ...['not-ready', 'unreachable'].map(taint => ({
        key: `node.kubernetes.io/${taint}`,
        operator: 'Exists',
        effect: 'NoExecute',
        tolerationSeconds: lostNodeSeconds,
      })),
    ],
    volumes: [
      ...(hasWrapper ? [wrapperVolume(options.launchId)] : []),
      { name: 'engine', emptyDir: {} },
      // Processes of one engine exchange tensors there; the usual 64 MiB are too few.
      { name: 'shared-memory', emptyDir: { medium: 'Memory' } },
      ...volumes.map(({ claim, host_path: path, read_only: readOnly }, at) => ({
        name: `volume-${at}`,
        ...(claim === undefined ? { hostPath: { path } } : { persistentVolumeClaim: { claimName: claim, readOnly } }),
      })),
    ],
  }
}

const wrapperVolume = (launchId: string): object => ({
  name: 'wrapper',
  secret: {
    secretName: podName(launchId),
    items: ['wrapper.py', 'settings.json', 'certificate.pem', 'key.pem'].map(key => ({ key, path: key })),
  },
})

/** The command of a container. Those of a launch that spans nodes are started again after their end, and run it once all the same. */
function commandOf(container: string, { needs }: PodPlan, argv: readonly string[]): string[] {
  if (needs.nodes === 1) return [...argv]
  const script = '[ -e "$0" ] && { trap "exit 0" TERM; sleep 2147483647 & wait; }; : > "$0"; exec "$@"'
  return ['/bin/sh', '-c', literal(script), `${engineFolder}/${container}-has-run`, ...argv]
}

const wrapperContainer = (plan: PodPlan): object => ({
  name: containers.wrapper,
  image: plan.settings.wrapper_image,
  imagePullPolicy: 'IfNotPresent',
  command: commandOf(containers.wrapper, plan, ['python3', '-I', `${wrapperFolder}/wrapper.py`, wrapperFolder]),
  env: [{ name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }],
  ports: [{ name: 'wrapper', containerPort: plan.ports.wrapper }],
  resources: { requests: { cpu: '50m', memory: '64Mi' }, limits: { memory: '512Mi' } },
  securityContext: { allowPrivilegeEscalation: false },
  volumeMounts: [
    { name: 'wrapper', mountPath: wrapperFolder, readOnly: true },
    { name: 'engine', mountPath: engineFolder },
  ],
})

/** The engine in the pods after the first, whose end is the end of theirs. */
function otherContainer(plan: PodPlan): object {
  const meets = `import os, socket; socket.create_connection((os.environ['${leaderWorkerSets.address}'], ${plan.ports.wrapper}), 2).close()`
  const look = { exec: { command: ['python3', '-c', meets] }, periodSeconds: 5, timeoutSeconds: 5 }
  return {
    ...engineContainer(plan, plan.options.otherNodes),
    // The first may still pull its image.
    startupProbe: { ...look, failureThreshold: 720 },
    livenessProbe: { ...look, failureThreshold: 3 },
  }
}

/** What replaces words in braces in the command of an engine. */
function placesOf({ needs, ports }: PodPlan): Record<string, string> {
  const { address, rank } = leaderWorkerSets
  return {
    '{port}': String(ports.engine),
    '{socket}': socketPath,
    '{home}': engineFolder,
    '{outputs}': engineFolder,
    // Kubernetes replaces references to variables.
    ...(needs.nodes > 1 && {
      '{nodes}': String(needs.nodes),
      '{node_rank}': `$(${rank})`,
      '{first_node}': `$(${address})`,
      '{first_node_port}': String(ports.meeting),
    }),
  }
}

function engineContainer(plan: PodPlan, more: readonly string[] = []): object {
  const { settings, options, needs, image, ports } = plan
  const places = placesOf(plan)
  const argv = [...options.argv, ...more].map(part =>
    literal(part).replaceAll(/\{\w+\}/g, found => places[found] ?? found),
  )
  const ofPod = needs.nodes > 1 && !('VLLM_HOST_IP' in options.env) ? ['VLLM_HOST_IP'] : []
  const cards = needs.cards > 0 ? { [settings.resource]: String(needs.cards) } : {}
  return {
    name: containers.engine,
    image: image.name,
    imagePullPolicy: 'IfNotPresent',
    command: commandOf(containers.engine, plan, [image.program ?? argv[0]!, ...argv.slice(1)]),
    workingDir: engineFolder,
    env: [
      { name: 'INFER_LAUNCH_ID', value: options.launchId },
      // By this address the parts on other nodes reach it.
      ...ofPod.map(name => ({ name, valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } })),
      ...Object.keys(variablesOf(plan))
        .filter(name => !ofPod.includes(name))
        .map(name => ({
          name,
          valueFrom: { secretKeyRef: { name: podName(options.launchId), key: `env.${name}` } },
        })),
    ],
    resources: {
      requests: {
        cpu: String(Math.max(1, Math.ceil(needs.cpus))),
        ...(needs.memoryBytes > 0 && { memory: `${Math.ceil(needs.memoryBytes / 2 ** 20)}Mi` }),
        ...cards,
      },
      limits: cards,
    },
    securityContext: { allowPrivilegeEscalation: false },
    // The wrapper ends when no server is left, and the engine with it.
    livenessProbe: { tcpSocket: { port: ports.wrapper }, ...probe },
    volumeMounts: [
      { name: 'engine', mountPath: engineFolder },
      { name: 'shared-memory', mountPath: '/dev/shm' },
      ...settings.volumes.map(({ mount_path: mountPath, read_only: readOnly }, at) => ({
        name: `volume-${at}`,
        mountPath,
        readOnly,
      })),
    ],
  }
}
