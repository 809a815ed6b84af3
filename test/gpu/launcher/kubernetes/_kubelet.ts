import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { ClusterApi } from '../../../../gpu/launcher/kubernetes/cluster-api.ts'
import { leaderWorkerSets } from '../../../../gpu/launcher/kubernetes/pod-manifest.ts'
import { newLaunchKey } from '../../../../gpu/launcher/launch-key.ts'
import { openLogBytes } from '../../../../gpu/launcher/log-bytes.ts'
import { processesWith, sendSignal } from '../../../../gpu/launcher/processes.ts'
import { addressOfName } from './_cluster-names.ts'

interface Env {
  name: string
  value?: string
  valueFrom?: { fieldRef?: object; secretKeyRef?: { name: string; key: string } }
}
interface Container {
  name: string
  image: string
  command: string[]
  env?: Env[]
  volumeMounts?: { name: string; mountPath: string }[]
  livenessProbe?: { tcpSocket?: { port: number }; exec?: { command: string[] }; failureThreshold: number }
}
interface Pod {
  metadata: {
    name: string
    uid: string
    namespace: string
    labels?: Record<string, string>
    deletionTimestamp?: string
    deletionGracePeriodSeconds?: number
  }
  spec: {
    nodeName?: string
    restartPolicy?: string
    nodeSelector?: Record<string, string>
    volumes?: { name: string; secret?: { secretName: string; items: { key: string; path: string }[] } }[]
    containers: Container[]
  }
}
export type TakenPod = Pick<Pod, 'metadata'>
interface Running {
  pod: Pod
  folder: string
  children: Map<string, ChildProcess>
  log: ReturnType<typeof openLogBytes>
  states: Map<string, object>
  /** How containers have ended that were started again. */
  lastStates: Map<string, object>
  start: (container: Container) => void
  endsBy: number
  ending?: Promise<void>
  over: boolean
}

/** Labels that have the kubelet of the test do something else than start a pod. */
const unschedulable = 'test/unschedulable'
/** A variable of all processes of a container: its pod and its name. */
const ofPod = 'INFER_TEST_POD'
/** Milliseconds between two probes, of which real ones have seconds. */
const probeMs = 300

export type Kubelet = Awaited<ReturnType<typeof startKubelet>>

/**
 * A kubelet in small, and a scheduler: binds each pod of a namespace to its node, starts the commands of its containers as local
 * processes with their files and variables, tells the API server what they do, probes and ends them. Folders of containers
 * are folders of a temporary one. `takes`: whether a pod without a node gets this one.
 */
export async function startKubelet(api: ClusterApi, node: string, takes: (pod: TakenPod) => boolean = () => true) {
  const pods = new Map<string, Running>()
  const closing = new AbortController()
  const signal = closing.signal
  const home = mkdtempSync(join(tmpdir(), 'infer-kubelet-'))
  chmodSync(home, 0o755)
  const base = `/api/v1/namespaces/${api.namespace}/pods`
  const { certificate, key } = await newLaunchKey()
  /** A node that is dead tells nothing, and ends nothing. */
  let isDead = false

  const logs = createServer({ cert: certificate, key }, (request, response) => {
    const [, , , name = ''] = new URL(request.url!, 'https://kubelet').pathname.split('/')
    const running = [...pods.values()].find(one => one.pod.metadata.name === name)
    if (!running || running.states.get('engine') === undefined) return void response.writeHead(404).end()
    response.writeHead(200)
    response.flushHeaders()
    const left = new AbortController()
    response.on('close', () => left.abort())
    void (async () => {
      for await (const { bytes } of running.log.read(0, left.signal)) response.write(bytes)
      response.end()
    })()
  }).listen(0, '127.0.0.1')
  await once(logs, 'listening')
  const { port } = logs.address() as AddressInfo
  await api.request(
    {
      method: 'POST',
      path: '/api/v1/nodes',
      body: {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name: node },
      },
    },
    signal,
  )
  const status = {
    allocatable: { cpu: '64', memory: '64Gi', pods: '500', 'nvidia.com/gpu': '4' },
    capacity: { cpu: '64', memory: '64Gi', pods: '500', 'nvidia.com/gpu': '4' },
    addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
    daemonEndpoints: { kubeletEndpoint: { Port: port } },
    conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'ready' }],
  }
  await api.request({ method: 'PATCH', path: `/api/v1/nodes/${node}/status`, body: { status } }, signal)

  // A new node has a taint until its kubelet says that it is ready.
  await api.request({ method: 'PATCH', path: `/api/v1/nodes/${node}`, body: { spec: { taints: [] } } }, signal)

  const tell = async (running: Running, more: object = {}) => {
    if (isDead) return
    const { pod, states } = running
    const containerStatuses = pod.spec.containers.map(({ name, image }) => ({
      name,
      image,
      imageID: '',
      ready: false,
      restartCount: running.lastStates.has(name) ? 1 : 0,
      lastState: running.lastStates.get(name) ?? {},
      state: states.get(name) ?? { waiting: { reason: 'ContainerCreating' } },
    }))
    const body = { status: { podIP: '127.0.0.1', podIPs: [{ ip: '127.0.0.1' }], containerStatuses, ...more } }
    await api.request({ method: 'PATCH', path: `${base}/${pod.metadata.name}/status`, body }, signal).catch(() => {})
  }

  async function begin(pod: Pod): Promise<void> {
    const { name, uid } = pod.metadata
    const running: Running = {
      pod,
      folder: join(home, uid),
      children: new Map(),
      log: openLogBytes(),
      states: new Map(),
      lastStates: new Map(),
      start() {},
      endsBy: Number.POSITIVE_INFINITY,
      over: false,
    }
    pods.set(uid, running)
    if (pod.spec.nodeSelector?.[unschedulable]) {
      const message = '0/1 nodes are available: 1 Insufficient nvidia.com/gpu.'
      const condition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }
      const body = { status: { conditions: [condition] } }
      return void (await api.request({ method: 'PATCH', path: `${base}/${name}/status`, body }, signal))
    }
    const target = { apiVersion: 'v1', kind: 'Node', name: node }
    const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name }, target }
    try {
      await api.request({ method: 'POST', path: `${base}/${name}/binding`, body: binding }, signal)
    } catch (thrown) {
      // Another node has it.
      pods.delete(uid)
      throw thrown
    }
    if (pod.spec.containers.some(({ image }) => image.startsWith('missing'))) {
      const waiting = { reason: 'ErrImagePull', message: 'failed to pull and unpack image: not found' }
      running.states.set('engine', { waiting })
      return await tell(running, { phase: 'Pending' })
    }
    await start(running)
  }

  async function start(running: Running): Promise<void> {
    const { pod, folder } = running
    const secrets = new Map<string, Record<string, string>>()
    const secretNames = new Set([
      ...(pod.spec.volumes ?? []).flatMap(({ secret }) => secret?.secretName ?? []),
      ...pod.spec.containers.flatMap(({ env = [] }) => env.flatMap(one => one.valueFrom?.secretKeyRef?.name ?? [])),
    ])
    for (const of of secretNames) {
      const path = base.replace(/pods$/, `secrets/${of}`)
      const { data, stringData } = (await api.request({ path }, signal)) as Record<string, Record<string, string>>
      const decoded = Object.entries(data ?? {}).map(
        ([at, text]) => [at, Buffer.from(text, 'base64').toString()] as const,
      )
      secrets.set(of, { ...stringData, ...Object.fromEntries(decoded) })
    }
    const moved = (text: string): string =>
      text.replaceAll(/\/run\/infer\/(\w+)/g, (_all, at: string) => join(folder, at))
    for (const { volumeMounts = [] } of pod.spec.containers)
      for (const { mountPath } of volumeMounts)
        if (mountPath.startsWith('/run/infer')) mkdirSync(moved(mountPath), { recursive: true })
    for (const { secret } of pod.spec.volumes ?? [])
      for (const { key: at, path } of secret?.items ?? [])
        writeFileSync(join(moved('/run/infer/wrapper'), path), moved(secrets.get(secret!.secretName)![at]!))
    const names = new Map<string, string>()
    const named = pod.spec.containers.flatMap(
      ({ env = [] }) => env.find(one => one.name === leaderWorkerSets.address) ?? [],
    )
    for (const { value = '' } of named) {
      if (names.has(value)) continue
      // Its own name may be among them.
      await tell(running)
      names.set(value, await addressOfName(api, value, { signal, isOver: () => running.ending !== undefined }))
    }
    running.start = container => run(running, container, secrets, text => names.get(text) ?? moved(text))
    for (const container of pod.spec.containers) running.start(container)
    await tell(running, { phase: 'Running' })
  }

  function run(
    running: Running,
    container: Container,
    secrets: Map<string, Record<string, string>>,
    moved: (text: string) => string,
  ) {
    const { name, command, env = [] } = container
    const variables = env.map(({ name: variable, value, valueFrom }) => {
      const { fieldRef, secretKeyRef } = valueFrom ?? {}
      const text = secretKeyRef ? secrets.get(secretKeyRef.name)![secretKeyRef.key]! : fieldRef ? '127.0.0.1' : value!
      return [variable, moved(text)] as const
    })
    const given: Record<string, string> = Object.fromEntries(variables)
    const expanded = (text: string) =>
      moved(text).replaceAll(/\$\$|\$\((\w+)\)/g, (all, of?: string) => (of === undefined ? '$' : (given[of] ?? all)))
    const [program, ...args] = command.map(expanded)
    const environment = { PATH: process.env.PATH, ...given, [ofPod]: `${running.pod.metadata.uid} ${name}` }
    const child = spawn(program!, args, {
      env: environment,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
      cwd: running.folder,
    })
    running.children.set(name, child)
    running.states.set(name, { running: { startedAt: new Date().toISOString() } })
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (bytes: Buffer) => {
        if (name === 'engine') running.log.push(bytes)
        else if (process.env.SHOW_WRAPPER) process.stderr.write(bytes)
      })
    child.on('error', () => {})
    const ended = new Promise<number>(resolve => {
      child.on('close', (code, by) => resolve(code ?? 128 + constants.signals[by!]))
      child.on('error', () => resolve(128))
    })
    void ended.then(code => containerEnded(running, container, code))
    if (container.livenessProbe) void probe(running, container, environment)
  }

  async function containerEnded(running: Running, container: Container, exitCode: number): Promise<void> {
    const { name } = container
    if (isDead) return void running.children.delete(name)
    // Its PID namespace ends with it.
    await endProcessesOf(running.pod, name)
    if (name === 'engine') running.log.end()
    const reason = exitCode === 0 ? 'Completed' : 'Error'
    const ended = { terminated: { exitCode, reason, startedAt: null, finishedAt: null } }
    running.children.delete(name)
    if (running.pod.spec.restartPolicy === 'Always' && !running.ending) {
      running.lastStates.set(name, ended)
      if (name === 'engine') running.log = openLogBytes()
      running.start(container)
      return await tell(running)
    }
    running.states.set(name, ended)
    running.over = running.children.size === 0
    const failed = [...running.states.values()].some(
      one => (one as { terminated?: { exitCode: number } }).terminated?.exitCode !== 0,
    )
    await tell(running, running.over ? { phase: failed ? 'Failed' : 'Succeeded' } : {})
  }

  /** Counts failures once it has succeeded, in place of the initial delay. */
  async function probe(
    running: Running,
    { name, livenessProbe }: Container,
    environment: Record<string, string | undefined>,
  ): Promise<void> {
    const { tcpSocket, exec, failureThreshold } = livenessProbe!
    // What a probe runs is not the engine.
    const { INFER_LAUNCH_ID: _launchId, [ofPod]: _pod, ...own } = environment
    const holds = () => (tcpSocket ? accepts(tcpSocket.port) : succeeds(exec!.command, own))
    const probed = running.children.get(name)
    let failures = Number.NEGATIVE_INFINITY
    while (running.children.get(name) === probed && failures < failureThreshold) {
      await pause(probeMs, undefined, { ref: false })
      failures = (await holds()) ? 0 : failures + 1
    }
    const child = running.children.get(name)
    if (isDead || !child || child !== probed) return
    kill(child, 'SIGTERM')
    await Promise.race([once(child, 'close'), pause(1_000)])
    kill(child, 'SIGKILL')
  }

  async function end(running: Running): Promise<void> {
    for (const child of running.children.values()) kill(child, 'SIGTERM')
    while (!running.over && running.children.size > 0 && performance.now() < running.endsBy)
      await pause(20, undefined, { ref: false })
    for (const child of running.children.values()) kill(child, 'SIGKILL')
    while (running.children.size > 0) await pause(20, undefined, { ref: false })
    await tell(running)
    if (isDead) return
    const { name, uid } = running.pod.metadata
    const body = { gracePeriodSeconds: 0, preconditions: { uid } }
    await api.request({ method: 'DELETE', path: `${base}/${name}`, body }, signal).catch(() => {})
  }

  function seen(type: string, pod: Pod): void {
    const { uid, deletionTimestamp, deletionGracePeriodSeconds = 30 } = pod.metadata
    const running = pods.get(uid)
    if (isDead) return
    const { nodeName } = pod.spec ?? {}
    if (!running && (nodeName === undefined ? !takes(pod) : nodeName !== node)) return
    if (!running && type !== 'DELETED') return void begin(pod).catch(() => {})
    if (!running || (type !== 'DELETED' && deletionTimestamp === undefined)) return
    const seconds = type === 'DELETED' ? 0 : deletionGracePeriodSeconds
    running.endsBy = Math.min(running.endsBy, performance.now() + seconds * 1_000)
    running.ending ??= end(running)
  }

  async function watch(): Promise<void> {
    const decoder = new TextDecoder()
    for (let from = ''; !signal.aborted; )
      try {
        if (from === '') {
          const { items, metadata } = (await api.request({ path: base }, signal)) as {
            items: Pod[]
            metadata: { resourceVersion: string }
          }
          for (const one of items) seen('ADDED', one)
          from = metadata.resourceVersion
        }
        let rest = ''
        for await (const bytes of api.stream({ path: base, query: { watch: '1', resourceVersion: from } }, signal)) {
          const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
          rest = lines.pop()!
          for (const line of lines.filter(Boolean)) {
            const { type, object } = JSON.parse(line) as { type: string; object: Pod }
            seen(type, object)
          }
        }
        from = ''
      } catch {
        from = ''
        await pause(50, undefined, { ref: false })
      }
  }
  const watching = watch()

  return {
    node,
    /** Ends nothing and tells nothing any more, as a node that has lost its network. */
    die: () => (isDead = true),
    /** What its processes do from outside: everything of a node that has lost its power. */
    async killAll(): Promise<void> {
      for (const running of pods.values()) for (const child of running.children.values()) kill(child, 'SIGKILL')
      for (const { pod } of pods.values()) await endProcessesOf(pod, 'engine')
    },
    async close(): Promise<void> {
      isDead = true
      await this.killAll()
      closing.abort()
      await watching
      logs.closeAllConnections()
      logs.close()
      await once(logs, 'close')
      rmSync(home, { recursive: true, force: true })
    },
  }
}

/** Resolves when none of the processes is left: a container ends with the last one. */
async function endProcessesOf({ metadata: { uid } }: Pod, container: string): Promise<void> {
  const left = () => processesWith({ [ofPod]: new Set([`${uid} ${container}`]) })
  for (let found = await left(); found.length > 0; found = await left()) {
    for (const { pid } of found) sendSignal(pid, 'SIGKILL')
    await pause(5)
  }
}

/** Runs a command in a container, as a probe. */
const succeeds = (command: readonly string[], env: Record<string, string | undefined>): Promise<boolean> =>
  new Promise(resolve => {
    const child = spawn(command[0]!, command.slice(1), { env, stdio: 'ignore' })
    child.on('close', code => resolve(code === 0))
    child.on('error', () => resolve(false))
  })

function kill(child: ChildProcess, how: NodeJS.Signals): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, how)
  } catch {
    // It has ended.
  }
}

const accepts = (port: number): Promise<boolean> =>
  new Promise(resolve => {
    const socket = connect(port, '127.0.0.1')
    socket.on('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
