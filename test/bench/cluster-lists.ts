import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import type { KubernetesPool } from '../../core/models/kubernetes-pool.ts'
import { PoolSettings } from '../../core/models/pools.ts'
import { openKubernetesLauncher } from '../../gpu/launcher/kubernetes/kubernetes.ts'
import type { PodRecord } from '../../gpu/launcher/kubernetes/listed-pods.ts'
import { newLaunchKey } from '../../gpu/launcher/launch-key.ts'
import { openRecords } from '../../gpu/launcher/launch-records.ts'
import { startApiServer, tokens } from '../gpu/launcher/kubernetes/_api-server.ts'
import { writeKubeconfig } from '../gpu/launcher/kubernetes/_kubeconfig.ts'
import { numberedLaunch, realisticPod } from '../gpu/launcher/kubernetes/_realistic-pods.ts'
import { openRole } from '../gpu/launcher/kubernetes/_role.ts'

/**
 * Measures what lists of 1,000 pods of a cluster, of 6 kB each, cost the event loop: whole ones, and those while changes are
 * watched. Prints one line each, which ends with MISSED above its bar; the exit code is then 1. Run: `npx node
 * test/bench/cluster-lists.ts`, after `npm run build`.
 */
const bars = { listMs: 20, turnMs: 2 }
const count = 1_000
const rounds = 20
const namespace = 'inference'
const pool = 'k8s'
const serverId = 'bench'

if (process.argv[2] === 'serve') await servePods()
else await measure()

/** The API server, in a process of its own. */
async function servePods(): Promise<void> {
  const server = await startApiServer(openRole(namespace))
  for (let number = 0; number < count; number++)
    server.put(`${namespace}/pods`, 'Pod', realisticPod(number, { serverId: `${serverId}.${pool}`, namespace }))
  process.on('message', ({ watches }: { watches: boolean }) => {
    server.state.watches = watches
    server.breakConnections()
    process.send!('done')
  })
  const bytes = JSON.stringify([...server.objects.values()]).length / count
  process.send!({ url: server.url, authority: server.certificate, bytes })
}

async function measure(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'infer-bench-'))
  const api = fork(import.meta.filename, ['serve'])
  try {
    const [{ url, authority, bytes }] = (await once(api, 'message')) as [Record<string, never>]
    console.log(`${count} pods of ${Math.round(Number(bytes))} bytes`)
    await writeRecords(folder)
    const kubeconfig = writeKubeconfig(folder, {
      who: 'infer',
      url: url!,
      authority: authority!,
      token: tokens.infer,
      serverName: 'infer',
    })
    const settings = PoolSettings.parse({
      kind: 'kubernetes',
      card_memory: '80GiB',
      kubeconfig,
      namespace,
    }) as KubernetesPool
    const silent = () => {}
    const log = { debug: silent, info: silent, warn: silent, error: silent }
    const begun = threadMs()
    const launcher = await openKubernetesLauncher({ pool, settings, dataDir: folder, serverId, host: process.env, log })
    const list = async () => {
      const { length } = await launcher.list(AbortSignal.timeout(30_000))
      if (length !== count) throw new Error(`${length} launches were listed.`)
    }
    await list()
    console.log(`opening, with the first list: ${(threadMs() - begun).toFixed(1)} ms`)
    api.send({ watches: false })
    await once(api, 'message')
    await report('a whole list of 1,000 launches', list)
    api.send({ watches: true })
    await once(api, 'message')
    await list()
    await report('a list of 1,000 launches that are watched', list)
    await launcher.leave()
    await launcher.close()
  } finally {
    api.kill()
    rmSync(folder, { recursive: true })
  }
}

async function writeRecords(folder: string): Promise<void> {
  const silent = () => {}
  const log = { debug: silent, info: silent, warn: silent, error: silent }
  const records = openRecords<PodRecord>(join(folder, 'kubernetes', pool, 'launches'), log)
  const key = await newLaunchKey()
  for (let number = 0; number < count; number++)
    await records.write({
      version: 1,
      ...key,
      launchId: numberedLaunch(number),
      engineId: `wkr_${number}`,
      modelId: `model-${number % 500}`,
      uid: null,
      ports: { wrapper: 20_001, engine: 20_002 },
      secrets: [],
      note: null,
      end: null,
    })
}

/** Processor time of the thread, milliseconds: on a busy machine any other clock would measure others. */
function threadMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

/** Processor time of each list, of several in a row as the clock has ticks of 4 ms, and the longest turns of the loop. */
async function report(what: string, list: () => Promise<void>): Promise<void> {
  for (let round = 0; round < 5; round++) await list()
  const times: number[] = []
  for (let round = 0; round < 5; round++) {
    const from = threadMs()
    for (let repeat = 0; repeat < rounds; repeat++) await list()
    times.push((threadMs() - from) / rounds)
  }
  const turns: number[] = []
  for (let round = 0; round < rounds; round++) turns.push(await longestTurn(list))
  print(what, times.toSorted((a, b) => a - b)[2]!, times, bars.listMs)
  // On the clock of the machine, so the least of them counts: other programs lengthen all others.
  print('its longest turn of the loop', Math.min(...turns), turns, bars.turnMs)
}

async function longestTurn(work: () => Promise<void>): Promise<number> {
  const state = { isOver: false }
  const done = work().finally(() => (state.isOver = true))
  let longest = 0
  for (let before = performance.now(); !state.isOver; ) {
    await turn()
    const now = performance.now()
    longest = Math.max(longest, now - before)
    before = now
  }
  await done
  return longest
}

function print(what: string, value: number, values: number[], bar: number): void {
  const isMissed = value > bar
  if (isMissed) process.exitCode = 1
  const shown = values.map(ms => ms.toFixed(1)).join(' ')
  console.log(`${what}: ${value.toFixed(2)} ms (${shown}), bar ${bar} ms${isMissed ? ' MISSED' : ''}`)
}
