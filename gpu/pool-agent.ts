import { createSecretKey, randomBytes, randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { isUnpacked, selfCommand, selfFiles, unpack, version } from '../core/assets.ts'
import { dataDirectory, hostEnvironment } from '../core/config.ts'
import { cacheDirectory } from '../core/extraction.ts'
import { removeTree } from '../core/files/remove-tree.ts'
import type { Log } from '../core/log.ts'
import { withLock } from '../core/models/hub/lock.ts'
import type { Device, Discovery } from './devices/device.ts'
import { translatedCode } from './engines/gguf/backend-search.ts'
import { openKeeperClient } from './launcher/keeper-client.ts'
import type { Launcher } from './launcher/launcher.ts'
import { openLocalLauncher } from './launcher/local.ts'
import { serveAgent } from './launcher/ssh/agent.ts'
import { locatedLaunch } from './launcher/ssh/portable-launch.ts'
import { sweepOutputs } from './launcher/ssh/stale-outputs.ts'
import { openCardBackends } from './placement/card-backend.ts'
import type { Backend } from './presets/preset.ts'
import { type ProbedMachine, probeMachine } from './probe-machine.ts'

/**
 * What engines of a pool share with an infer of this machine: environments and builds that `infer engine setup` made, and the models
 * and custom nodes of its ComfyUI.
 */
const sharedFolders = ['engines', 'backends', 'comfyui']

export interface PoolAgentOptions {
  /** The folder of the server's engines on this machine. Removed when the server ends them. */
  folder: string
  /** Milliseconds for which engines run on without a server. */
  graceMs: number
  input: Readable
  output: Writable
  log: Log
}

/**
 * Runs engines of a server elsewhere on this machine, as its calls say. Waits for the agent before it, if there is one.
 * Resolves when the server is gone or needs it no more.
 */
export async function runPoolAgent({ folder, graceMs, input, output, log }: PoolAgentOptions): Promise<void> {
  mkdirSync(join(folder, 'run'), { recursive: true, mode: 0o700 })
  const gone = new AbortController()
  input.once('close', () => gone.abort())
  const isClosed = await withLock(join(folder, 'run', 'agent.lock'), { signal: gone.signal, onWait: () => {} }, serve)
  if (isClosed) await removeTree(folder)

  async function serve(): Promise<boolean> {
    if (!isUnpacked()) unpack()
    linkShared(folder)
    const environment = hostEnvironment()
    const [machine, keeper] = await Promise.all([
      probeMachine(folder, environment),
      openKeeperClient({ dataDir: folder, key: keyIn(folder), graceMs, log }),
    ])
    const local = await openLocalLauncher({
      dataDir: folder,
      bootId: randomUUID(),
      host: environment,
      wrapper: machine.wrapper,
      support: machine.sandbox,
      keeper,
      devices: async () => {
        const found = await machine.devices.cards()
        return { ...found, devices: [...found.devices, machine.devices.cpu] }
      },
      log,
    })
    const { file, args } = selfCommand([])
    const program = { command: [file, ...args], files: selfFiles(), env: translatedCode(cacheDirectory()) }
    const builtIn = openBuiltInBackend({ folder, environment, wrapper: machine.wrapper, log })
    let closed = false
    const launcher: Launcher = {
      ...local,
      start: options => local.start(locatedLaunch(options, { ...program, backend: builtIn.folders() })),
      async capacity() {
        const found = await local.capacity()
        return { ...found, ...(await builtIn.of(found.devices)) }
      },
      async close() {
        await local.close()
        closed = true
      },
    }
    const sweep = sweepOutputs(folder, log)
    await serveAgent({ launcher, version, input, output })
    sweep.close()
    return closed
  }
}

/** Milliseconds that an answer waits for the trial of the backends, which takes minutes the first time. */
const trialMs = 4_000

/** Finds by what the built-in engine uses the cards of this machine: as here, by a trial whose result is kept. */
function openBuiltInBackend(options: {
  folder: string
  environment: Readonly<Record<string, string | undefined>>
  wrapper: ProbedMachine['wrapper']
  log: Log
}) {
  let devices: readonly Device[] = []
  let found: Backend | null | undefined
  const backends = openCardBackends({ ...options, dataDir: options.folder, memory: { devices: () => [...devices] } })
  return {
    async of(now: readonly Device[]): Promise<Pick<Discovery, 'builtInBackend'>> {
      devices = now
      const search = backends.find({ gpu: 'auto' }).then(backend => (found = backend))
      await Promise.race([search, pause(trialMs, undefined, { ref: false })])
      return found === undefined ? {} : { builtInBackend: found?.gpu ?? null }
    },
    /** Those that its engines read. */
    folders: (): string[] => [found?.folder, found?.linked].filter(path => path !== undefined),
  }
}

/** The key by which the keeper knows its servers. */
function keyIn(folder: string) {
  const path = join(folder, 'run', 'key')
  if (!existsSync(path)) {
    // Whole or not at all: a keeper that runs must know it later.
    writeFileSync(`${path}.part`, randomBytes(32), { mode: 0o600 })
    renameSync(`${path}.part`, path)
  }
  return createSecretKey(readFileSync(path))
}

function linkShared(folder: string): void {
  for (const name of sharedFolders) {
    const [link, target] = [join(folder, name), join(dataDirectory(), name)]
    if (existsSync(target) && !existsSync(link)) symlinkSync(target, link)
  }
}
