import type { DeviceProcess } from '../../core/models/fleet.ts'
import { runProgram } from '../sandbox/program.ts'
import { isCardLost, lostCards } from './card-faults.ts'
import { cpuDevice } from './cpu.ts'
import type { Discovery } from './device.ts'
import { parseSliceMemory, parseSlices, type Slice } from './mig.ts'
import { devicesOf, fewFields, fields, parseCards, problemOf, queryArguments, valueOrNull } from './nvidia.ts'

export interface RunOptions {
  /** Only `PATH`, to find nvidia-smi, and `LD_LIBRARY_PATH` of this environment are used. */
  environment?: Readonly<Record<string, string | undefined>>
  timeoutMs?: number
}

/** Runs nvidia-smi with these arguments. Never throws. */
function nvidiaSmi(args: readonly string[], { environment = {}, timeoutMs = 10_000 }: RunOptions) {
  const env: Record<string, string> = { LC_ALL: 'C', PATH: environment.PATH ?? '/usr/local/bin:/usr/bin:/bin' }
  if (environment.LD_LIBRARY_PATH) env.LD_LIBRARY_PATH = environment.LD_LIBRARY_PATH
  return runProgram('nvidia-smi', args, env, timeoutMs)
}

/** Queries the cards, and tells what is wrong when the driver does not answer. Never throws. */
export async function queryCards(options: RunOptions = {}) {
  let queried: readonly string[] = fields
  let run = await nvidiaSmi(queryArguments(queried), options)
  if (problemOf(run)?.retryWithFewFields) {
    queried = fewFields
    run = await nvidiaSmi(queryArguments(queried), options)
  }
  const problem = problemOf(run)
  return { problem, cards: problem ? [] : parseCards(run.stdout, queried), run, queried }
}

/** Finds the NVIDIA cards of this machine. Never throws: `reason` says what is wrong. */
export async function discover(options: RunOptions = {}): Promise<Discovery> {
  const { problem, cards, run, queried } = await queryCards(options)
  if (problem && isCardLost(run)) return await discoverEach(queried, problem, options)
  if (problem) return { devices: [], reason: problem.reason, broken: problem.broken }
  const devices = devicesOf(cards, cards.some(card => card.mig) ? await slicesOf(options) : [], cpuDevice().totalBytes)
  const reason = devices.length > 0 ? null : 'nvidia-smi reported no card that can be used.'
  const lost = lostCards(run.stdout, queried)
  return { devices, reason, broken: devices.length === 0 && lost.length === 0, lost }
}

/** Machines with more cards are rare, and those above are then not found for as long as another one does not answer. */
const mostCards = 16

/** Finds the cards one by one: of some drivers, one that has fallen off the bus hides the others. */
async function discoverEach(
  queried: readonly string[],
  { reason }: { reason: string },
  options: RunOptions,
): Promise<Discovery> {
  const indices = Array.from({ length: mostCards }, (_, index) => index)
  const runs = await Promise.all(
    indices.map(index => nvidiaSmi([...queryArguments(queried), '-i', String(index)], options)),
  )
  const devices = devicesOf(
    runs.flatMap(({ exitCode, stdout }) => (exitCode === 0 ? parseCards(stdout, queried) : [])),
    [],
    cpuDevice().totalBytes,
  )
  const lost = indices.flatMap(index => (isCardLost(runs[index]!) ? [{ id: `gpu${index}`, reason }] : []))
  return { devices, reason: devices.length > 0 ? null : reason, broken: devices.length === 0, lost }
}

/** Every driver lists the UUIDs with `-L`; only the XML has the memory. Without the XML the memory is estimated. */
async function slicesOf(options: RunOptions): Promise<Slice[]> {
  const [listing, xml] = await Promise.all([nvidiaSmi(['-L'], options), nvidiaSmi(['-q', '-x'], options)])
  return parseSlices(listing.stdout, parseSliceMemory(xml.stdout))
}

export type CardProcess = Omit<DeviceProcess, 'engineId'>

/**
 * Lists the compute processes by the UUID of their card. Cards without processes are missing; the value is null for a
 * card whose processes cannot be read. Returns null when the query fails; never throws. Source: nvidia-smi's
 * `--help-query-compute-apps`.
 */
export async function cardProcesses(options: RunOptions = {}): Promise<Map<string, CardProcess[] | null> | null> {
  const query = ['--query-compute-apps=gpu_uuid,pid,process_name,used_gpu_memory', '--format=csv,noheader,nounits']
  const { exitCode, stdout } = await nvidiaSmi(query, options)
  return exitCode === 0 ? parseCardProcesses(stdout) : null
}

/** Parses the CSV output. A process name is its program or its title and may contain commas. */
export function parseCardProcesses(csv: string): Map<string, CardProcess[] | null> {
  const cards = new Map<string, CardProcess[] | null>()
  for (const line of csv.split('\n')) {
    const [, uuid, pid, name, mebibytes] = /^\s*(GPU-[^\s,]+)\s*,([^,]*),(.*),([^,]*)$/.exec(line.trim()) ?? []
    if (uuid === undefined) continue
    const number = positive(pid!)
    const others = cards.get(uuid)
    // With one unreadable row the list of its card is incomplete.
    if (number === null || others === null) {
      cards.set(uuid, null)
      continue
    }
    const used = positive(mebibytes!)
    const one = { pid: number, name: valueOrNull(name!), bytes: used === null ? null : used * 2 ** 20 }
    cards.set(uuid, [...(others ?? []), one])
  }
  return cards
}

const positive = (text: string): number | null => {
  const value = Number(valueOrNull(text) ?? Number.NaN)
  return Number.isInteger(value) && value > 0 ? value : null
}
