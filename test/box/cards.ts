import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, readlinkSync, renameSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { cardLine, installNvidiaSmi } from '../fixtures/nvidia-smi.ts'

/** A process that uses memory of a card. */
export interface Holder {
  /** The model of an engine; null for a process that infer did not start. */
  model: string | null
  card: number
  mebibytes: number
  /** On this machine; null if it was not found, or has ended and its memory is not free yet. */
  pid: number | null
  program: string
}

/** What an engine sends to the driver when it starts. */
export interface Claim {
  model: string
  card: number
  mebibytes: number
  /** As the engine sees them, inside its sandbox. */
  pid: number
  namespace: string
}

/** Milliseconds from the end of a process until its card shows the memory as free, as a real driver takes them. */
const freeDelayMs = 300
/** What a card uses without any process, MiB. */
const idleMebibytes = 4

export type Cards = ReturnType<typeof openCards>

/**
 * The driver of fake cards of equal size: engines claim memory over a socket and hold it until their process has ended,
 * however it ends. `nvidia-smi` in `binaries` prints what they hold. It outlives the server, as a driver does.
 */
export function openCards(
  folder: string,
  { count, mebibytes, now }: { count: number; mebibytes: number; now: () => number },
) {
  const [binaries, shared] = [join(folder, 'bin'), join(folder, 'driver')]
  for (const path of [binaries, shared]) mkdirSync(path, { recursive: true })
  const holders = new Set<Holder>()
  const foreign: ChildProcess[] = []
  /** Processes of others that take memory as soon as a card has it. */
  const waiting: { mebibytes: number; take(card: number): void }[] = []
  const refused: { model: string; at: number }[] = []
  let mostMebibytes = 0
  const loads = new Map<string, number>()
  /** Cards that have fallen off the bus. */
  const lost = new Set<number>()

  const used = (card: number): number =>
    [...holders].reduce((sum, one) => sum + (one.card === card ? one.mebibytes : 0), idleMebibytes)
  const uuid = (card: number): string => `GPU-00000000-0000-0000-0000-00000000000${card}`
  const all = Array.from({ length: count }, (_, card) => card)

  /** Files change by rename, so that nvidia-smi never prints half a list. */
  function write(name: string, lines: readonly string[]): void {
    const path = join(folder, name)
    writeFileSync(`${path}.new`, lines.map(line => `${line}\n`).join(''))
    renameSync(`${path}.new`, path)
  }

  function changed(): void {
    mostMebibytes = Math.max(mostMebibytes, ...all.map(used))
    const card = (index: number) => ({
      index,
      uuid: uuid(index),
      name: 'NVIDIA GeForce RTX 4090',
      compute_cap: '8.9',
      'memory.total': lost.has(index) ? '[GPU is lost]' : mebibytes,
      'memory.used': lost.has(index) ? '[GPU is lost]' : used(index),
    })
    write(
      'cards.csv',
      all.map(index => cardLine(card(index))),
    )
    write(
      'processes.csv',
      [...holders].flatMap(one =>
        one.pid === null ? [] : `${uuid(one.card)}, ${one.pid}, ${one.program}, ${one.mebibytes}`,
      ),
    )
  }

  function grant(holder: Holder): boolean {
    if (lost.has(holder.card) || holder.mebibytes > mebibytes - used(holder.card)) return false
    holders.add(holder)
    changed()
    return true
  }

  function free(holder: Holder): void {
    holders.delete(holder)
    const next = waiting[0]
    const card = next && all.find(index => !lost.has(index) && mebibytes - used(index) >= next.mebibytes)
    if (next && card !== undefined) {
      waiting.shift()
      next.take(card)
    }
    changed()
  }

  function serve(socket: Socket): void {
    socket.on('error', () => {})
    createInterface({ input: socket }).once('line', line => {
      const { model, card, mebibytes: wanted, pid, namespace } = JSON.parse(line) as Claim
      const holder = { model, card, mebibytes: wanted, pid: hostPid(namespace, pid), program: process.execPath }
      loads.set(model, (loads.get(model) ?? 0) + 1)
      const granted = grant(holder)
      if (!granted) refused.push({ model, at: now() })
      else
        socket.once('close', () => {
          holder.pid = null
          changed()
          setTimeout(() => free(holder), freeDelayMs)
        })
      socket.write(granted ? 'granted\n' : `refused ${mebibytes - used(card)}\n`)
    })
  }

  const driver = createServer(serve).listen(join(shared, 'socket'))
  changed()
  installNvidiaSmi(binaries, {
    cards: `cat ${join(folder, 'cards.csv')}`,
    processes: `cat ${join(folder, 'processes.csv')}`,
  })

  return {
    /** The folder to put first on the PATH. */
    binaries,
    /** The folder that engines need; the driver listens on `socket` in it. */
    shared,
    /** Engines that found too little memory. */
    refused: refused as readonly { model: string; at: number }[],
    /** The most memory of one card that was in use, MiB. */
    most: () => mostMebibytes,
    /** How often an engine of each model has claimed memory. */
    loads: loads as ReadonlyMap<string, number>,
    holders: (): Holder[] => [...holders],
    /** A process of somebody else takes memory the moment that a card has it. Resolves with a function that ends it. */
    occupy: (wanted: number): Promise<{ card: number; end: () => void }> =>
      new Promise(resolve => {
        const take = (card: number) => {
          const child = spawn('sleep', ['600'], { stdio: 'ignore' })
          foreign.push(child)
          const holder = { model: null, card, mebibytes: wanted, pid: child.pid ?? null, program: 'python3' }
          grant(holder)
          child.once('exit', () => free(holder))
          resolve({ card, end: () => void child.kill() })
        }
        const card = all.find(index => mebibytes - used(index) >= wanted)
        if (card === undefined) waiting.push({ mebibytes: wanted, take })
        else take(card)
      }),
    /** A card falls off the bus: the driver cannot read it, and what uses it hangs. */
    lose(card: number): void {
      lost.add(card)
      for (const { card: on, pid } of holders) if (on === card && pid !== null) process.kill(pid, 'SIGSTOP')
      changed()
    },
    /** It is there again. */
    restore(card: number): void {
      lost.delete(card)
      changed()
    },
    close(): void {
      for (const child of foreign) child.kill()
      driver.close()
    },
  }
}

/** Returns the process id on this machine of a process that knows itself by another in its own namespace. */
function hostPid(namespace: string, pid: number): number | null {
  for (const name of readdirSync('/proc').filter(one => /^\d+$/.test(one)))
    try {
      if (readlinkSync(`/proc/${name}/ns/pid`) !== namespace) continue
      if (/^NSpid:.*?(\d+)$/m.exec(readFileSync(`/proc/${name}/status`, 'utf8'))?.[1] === String(pid))
        return Number(name)
    } catch {
      // It has ended since it was listed.
    }
  return null
}
