import { randomBytes } from 'node:crypto'
import { existsSync, rmSync } from 'node:fs'
import { open, rename, rm, statfs } from 'node:fs/promises'
import { promisify } from 'node:util'
import type { Log } from '../../log.ts'

export interface SpaceOptions {
  directory: string
  ballast: string
  minFreeBytes: number
  ballastBytes: number
  log: Log
}

/** What the disk allows: everything, no new work (`low`), or only the end of what runs (`full`). */
export type DiskState = 'enough' | 'low' | 'full'

export interface Space {
  room(): DiskState
  /** Why it is read-only, as a sentence; true when it is not. */
  writable(): true | string
  /** The writer met a full disk and has given up the ballast. */
  full(): void
  close(): void
}

const intervalMs = 1000
/** After the disk was found full, how long what `statfs` says is not believed (quotas, reserved blocks). */
const fullHoldMs = 3000

/**
 * Decides from the free bytes. With the ballast given up, there has to be room for it too before new work is taken:
 * otherwise putting it back would fill the disk again.
 */
export function diskStateOf(facts: { free: number; minFree: number; ballast: number; hasBallast: boolean }): DiskState {
  const { free, minFree, ballast, hasBallast } = facts
  if (free >= minFree + (hasBallast ? 0 : ballast)) return 'enough'
  return hasBallast && free >= ballast ? 'low' : 'full'
}

/**
 * Watches the free space of the disk that holds the database. Below the mark the store takes no new work; when almost
 * nothing is left, the ballast file is given up so that what runs can finish. Recovers by itself.
 */
export async function openSpace({ directory, ballast, minFreeBytes, ballastBytes, log }: SpaceOptions): Promise<Space> {
  let room: DiskState = 'enough'
  let free = 0
  let fullUntil = 0
  let context: Promise<void> | undefined
  const ended = new AbortController()

  async function look(): Promise<void> {
    const { bavail, bsize } = await statfs(directory)
    free = bavail * bsize
    const hasBallast = ballastBytes === 0 || existsSync(ballast)
    const found = diskStateOf({ free, minFree: minFreeBytes, ballast: ballastBytes, hasBallast })
    if (found === 'enough' && performance.now() < fullUntil) return
    turn(found)
    if (room === 'full') rmSync(ballast, { force: true })
    if (room === 'enough' && !hasBallast) context ??= writeBallast().finally(() => (context = undefined))
  }

  function turn(to: DiskState): void {
    if (to === room) return
    const before = room
    room = to
    const fields = { free_bytes: free, min_free_bytes: minFreeBytes }
    if (to === 'enough') log.info('There is room on the disk again: new work is taken', fields)
    else if (before === 'enough') log.warn('The disk is running full: no new work is taken', fields)
  }

  /** Real bytes and not a hole, so that giving the file up gives room. Under its name only when it is whole. */
  async function writeBallast(): Promise<void> {
    const partial = `${ballast}.partial`
    try {
      const file = await open(partial, 'w', 0o600)
      try {
        // Random, because a file system that compresses would make next to nothing of anything else.
        const block = await promisify(randomBytes)(1 << 20)
        for (let left = ballastBytes; left > 0 && !ended.signal.aborted; left -= block.length)
          await file.write(block, 0, Math.min(left, block.length))
        await file.sync()
      } finally {
        await file.close()
      }
      if (ended.signal.aborted) await rm(partial, { force: true })
      else await rename(partial, ballast)
    } catch (cause) {
      await rm(partial, { force: true })
      log.warn('The ballast file could not be written', { file: ballast }, cause)
    }
  }

  const again = () => {
    look()
      .catch((cause: unknown) => log.warn('The free space of the disk is not known', { directory }, cause))
      .finally(() => {
        if (!ended.signal.aborted) timer = setTimeout(again, intervalMs).unref()
      })
  }
  let timer: NodeJS.Timeout | undefined
  await look()
  timer = setTimeout(again, intervalMs).unref()

  return {
    room: () => room,
    writable: () =>
      room === 'enough' ||
      `The disk that holds ${directory} has ${mebibytes(free)} MiB free and needs ${mebibytes(minFreeBytes)}; ` +
        'no new work is taken until there is room.',
    full() {
      fullUntil = performance.now() + fullHoldMs
      turn('full')
    },
    close() {
      ended.abort()
      clearTimeout(timer)
    },
  }
}

const mebibytes = (bytes: number): number => Math.floor(bytes / (1 << 20))
