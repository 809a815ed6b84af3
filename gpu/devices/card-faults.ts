import { type ProgramRun, runProgram } from '../sandbox/program.ts'
import type { CardReport } from './device.ts'

/** The words by which nvidia-smi says in the place of a value that a card does not work. */
const lostWords = /^\[?(Unknown Error|GPU is lost|GPU requires reset|Reset required)\]?$/i

/** Whether nvidia-smi has failed because of one card that does not answer. */
export const isCardLost = ({ exitCode, stdout, stderr }: ProgramRun): boolean =>
  exitCode === 15 || (exitCode !== 0 && /Unable to determine the device handle/i.test(stdout + stderr))

/** Returns the cards whose memory cannot be read because they do not work, from the CSV output of the cards. */
export function lostCards(csv: string, queried: readonly string[]): CardReport[] {
  return csv.split('\n').flatMap(line => {
    const values = line.split(',').map(value => value.trim())
    if (values.length !== queried.length) return []
    const [index, total] = [values[queried.indexOf('index')]!, values[queried.indexOf('memory.total')]!]
    const said = lostWords.exec(total)?.[1]
    if (!/^\d+$/.test(index) || said === undefined) return []
    return [{ id: `gpu${index}`, reason: `nvidia-smi reports '${said}' for it.` }]
  })
}

/** Fields about errors of the memory. Source: `nvidia-smi --help-query-gpu`. */
const faultFields = ['index', 'pci.bus_id', 'retired_pages.pending', 'remapped_rows.pending', 'remapped_rows.failure']

/** The cards by their place on the bus, and those whose memory has errors that only a reset of the card ends. */
export interface CardFaults {
  buses: ReadonlyMap<string, string>
  faulty: CardReport[]
}

/** Asks the driver for faults of the memory. Null where it knows none of the fields; never throws. */
export async function cardFaults(
  environment: Readonly<Record<string, string | undefined>>,
): Promise<CardFaults | null> {
  const env: Record<string, string> = { LC_ALL: 'C', PATH: environment.PATH ?? '/usr/local/bin:/usr/bin:/bin' }
  const args = [`--query-gpu=${faultFields.join(',')}`, '--format=csv,noheader,nounits']
  const { exitCode, stdout } = await runProgram('nvidia-smi', args, env, 10_000)
  return exitCode === 0 ? parseCardFaults(stdout) : null
}

export function parseCardFaults(csv: string): CardFaults {
  const buses = new Map<string, string>()
  const faulty: CardReport[] = []
  for (const line of csv.split('\n')) {
    const values = line.split(',').map(value => value.trim())
    if (values.length !== faultFields.length) continue
    const [index, bus, retired, remapped, failed] = values as [string, string, string, string, string]
    if (!/^\d+$/.test(index)) continue
    buses.set(busOf(bus), `gpu${index}`)
    const isSet = (value: string) => /^(yes|[1-9]\d*)$/i.test(value)
    const waits = isSet(retired) || isSet(remapped)
    if (isSet(failed)) faulty.push({ id: `gpu${index}`, reason: 'Its memory has errors that could not be repaired.' })
    else if (waits)
      faulty.push({ id: `gpu${index}`, reason: 'Its memory has errors: it must be reset (nvidia-smi -r).' })
  }
  return { buses, faulty }
}

/** An address on the bus in one form: nvidia-smi writes the domain with eight digits, the kernel with four. */
const busOf = (address: string): string =>
  address
    .toLowerCase()
    .replace(/^0+(?=[0-9a-f]{4}:)/, '')
    .replace(/\.\d+$/, '')

/** Errors after which a card must be reset. Source: NVIDIA's catalog of Xid errors; others are of programs. */
const fatalXids = new Set([48, 62, 64, 79, 95, 119, 120, 140, 143])

/** Returns the error of a card in a line of the kernel's log; undefined for other lines and for errors of programs. */
export function xidIn(line: string): { bus: string; reason: string } | undefined {
  const [, bus, number, text = ''] = /NVRM: Xid \(PCI:([0-9a-f:.]+)\): (\d+),?\s*(.*)/i.exec(line) ?? []
  if (bus === undefined || !fatalXids.has(Number(number))) return undefined
  const said = text.replace(/^pid=[^,]*,\s*(name=[^,]*,\s*)?/i, '').slice(0, 120)
  return { bus: busOf(bus), reason: `The kernel reports Xid ${number}${said ? `: ${said.replace(/\.$/, '')}` : ''}.` }
}
