import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, isAbsolute, join } from 'node:path'
import { selfCommand } from '../../core/assets.ts'
import { broken, fine, type InspectionFinding } from '../../core/inspection.ts'
import type { Model } from '../../core/models/model.ts'
import type { SshPool } from '../../core/models/pools.ts'
import { launchNeeds } from '../launcher/launch-needs.ts'
import { type Connection, openConnection } from '../launcher/ssh/connection.ts'
import { copyPath, findScript, modelFilesAt } from '../launcher/ssh/model-files.ts'
import { folderThere, programThere } from '../launcher/ssh/program-there.ts'
import { openSshLauncher } from '../launcher/ssh/ssh.ts'
import { quoted } from '../launcher/ssh/ssh-command.ts'
import type { PoolCheckOptions } from './check-pool.ts'
import { faultFinding } from './pool-findings.ts'
import {
  type FoundModel,
  machineFindings,
  modelsFinding,
  programsFinding,
  suppliesIn,
  suppliesScript,
  trialFinding,
} from './ssh-findings.ts'
import { tryLaunch } from './trial-launch.ts'

/** Milliseconds in which doctor there must end, as it may test backends for the first time, and a trial engine must answer. */
const doctorMs = 180_000
const trialMs = 30_000

/**
 * Checks a pool of ssh: the connection, the programs, infer there, the machine by its own doctor, the files of the models and
 * the space for them, and by a trial engine whether engines can be started and reached. Copies infer there, as the first
 * engine would. Never throws.
 */
export async function* checkSshPool(options: PoolCheckOptions<SshPool>): AsyncGenerator<InspectionFinding> {
  const { settings, environment } = options
  const ssh = { command: ['ssh'] as const, env: environment }
  const folder = mkdtempSync(join(tmpdir(), 'infer-doctor-'))
  try {
    let connection: Connection
    try {
      connection = await openConnection(settings, join(folder, 'ssh'), ssh)
    } catch (thrown) {
      return yield faultFinding('connection', (thrown as Error).message, `Connect once by hand: ssh ${settings.host}`)
    }
    try {
      if (!(yield* checkMachine(connection, options))) return
    } finally {
      await connection.close()
    }
    yield trialFinding(await tryEngine(folder, options))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** What can be checked over the connection alone. Returns whether an engine may be tried. */
async function* checkMachine(
  connection: Connection,
  { settings: { host }, models }: PoolCheckOptions<SshPool>,
): AsyncGenerator<InspectionFinding, boolean> {
  const { system, cache } = connection.box
  yield fine('connection', `${host} accepts this user, and is ${system}`)
  const asked = await connection.run(suppliesScript(cache))
  const supplies = suppliesIn(asked.stdout)
  yield programsFinding(supplies)
  if (supplies.missing.length > 0) return false
  let program: readonly string[]
  try {
    program = await programThere(connection, host)
  } catch (thrown) {
    yield faultFinding('infer there', (thrown as Error).message, `Free space in ${folderThere(cache)} there.`)
    return false
  }
  yield fine('infer there', program.at(-1)!)
  const found = machineFindings(await doctorThere(connection, program))
  if (found) for (const finding of found) yield finding
  else
    yield broken(
      'infer there',
      `its doctor does not answer on ${host}`,
      `Run it there by hand: ${program.join(' ')} doctor`,
    )
  yield modelsFinding(await findModels(connection, models), supplies)
  return found !== undefined
}

/** What `infer doctor --json` prints there; an empty text if it does not end in time. */
async function doctorThere(connection: Connection, program: readonly string[]): Promise<string> {
  const child = connection.start(`exec ${[...program, 'doctor', '--json'].map(quoted).join(' ')}`)
  let text = ''
  child.stdin?.end()
  child.stderr?.resume()
  child.stdout!.setEncoding('utf8').on('data', (piece: string) => (text += piece))
  const timer = setTimeout(() => child.kill('SIGKILL'), doctorMs)
  await once(child, 'close').catch(() => {})
  clearTimeout(timer)
  return text
}

async function findModels(connection: Connection, models: readonly Model[]): Promise<FoundModel[]> {
  const paths = new Set(models.flatMap(({ source }) => (source !== undefined && isAbsolute(source) ? [source] : [])))
  const found: FoundModel[] = []
  for (const path of paths) {
    const here = await modelFilesAt(path)
    if (!here) continue
    const script = findScript([path, copyPath(connection.box.cache, here)], here.bytes)
    found.push({ path, bytes: here.bytes, isThere: (await connection.run(script)).stdout !== '' })
  }
  return found
}

/** Starts the demo engine there by the launcher itself, so that everything is tried that an engine needs. */
async function tryEngine(folder: string, { pool, settings, environment: host, log }: PoolCheckOptions<SshPool>) {
  const launcher = await openSshLauncher({ pool, settings, dataDir: folder, serverId: basename(folder), log, host })
  const { file, args } = selfCommand(['engine', 'demo', '--id', 'doctor', '--socket', '{socket}', '--sound-only'])
  const trial = await tryLaunch(launcher, { argv: [file, ...args], needs: launchNeeds(0, 0, null), limitMs: trialMs })
  await launcher.close()
  return trial
}
