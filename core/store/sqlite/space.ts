import { randomBytes } from 'node:crypto'
import { existsSync, rmSync } from 'node:fs'
import { open, rename, rm, statfs } from 'node:fs/promises'
import { promisify } from 'node:util'
import type { Log } from '../../log.ts'

interface SpaceOptions {
  directory: string
  ballast: string
  minFreeBytes: number
  ballastBytes: number
  log: Log
}

/** What the disk allows: everything, no new work (`low`), or only finishing running work (`full`). */
type DiskState = 'enough' | 'low' | 'full'

const intervalMs = 1000
/** How long to distrust `statfs` after a write found the disk full (quotas, reserved blocks). */
const fullHoldMs = 3000

/**
 * Decides from the free bytes. While the ballast is removed, new work also requires space for the ballast: otherwise
 * writing it again would fill the disk.
 */
export function diskStateOf(facts: { free: number; minFree: number; ballast: number; hasBallast: boolean }): DiskState {
  const { free, minFree, ballast, hasBallast } = facts
  if (free >= minFree + (hasBallast ? 0 : ballast)) return 'enough'
  return hasBallast && free >= ballast ? 'low' : 'full'
}

/**
 * Watches the free space of the disk that holds the database. Below the limit, the store accepts no new work; when
 * almost nothing is left, it removes the ballast file so that running work can finish. Recovers by itself.
 */
export async function openSpace({ directory, ballast, minFreeBytes, ballastBytes, log }: SpaceOptions) {
  let room: DiskState = 'enough'
  let free = 0
  let fullUntil = 0
  let writing: Promise<void> | undefined
  const ended = new AbortController()

  async function measure(): Promise<void> {
    const { bavail, bsize } = await statfs(directory)
    free = bavail * bsize
    const hasBallast = ballastBytes === 0 || existsSync(ballast)
    const found = diskStateOf({ free, minFree: minFreeBytes, ballast: ballastBytes, hasBallast })
    if (found === 'enough' && performance.now() < fullUntil) return
    setState(found)
    if (room === 'full') rmSync(ballast, { force: true })
    if (room === 'enough' && !hasBallast) writing ??= writeBallast().finally(() => (writing = undefined))
  }

  function setState(to: DiskState): void {
    if (to === room) return
    const before = room
    room = to
    const fields = { free_bytes: free, min_free_bytes: minFreeBytes }
    if (to === 'enough') log.info('The disk has free space again: new work is accepted', fields)
    else if (before === 'enough') log.warn('The disk is nearly full: no new work is accepted', fields)
  }

  /** Writes real bytes and no sparse file, so that removing it frees space. Gets its final name only when complete. */
  async function writeBallast(): Promise<void> {
    const partial = `${ballast}.partial`
    try {
      {
        await using file = await open(partial, 'w', 0o600)
        // Random, because a file system with compression would shrink anything else.
        const block = await promisify(randomBytes)(64 << 10)
        for (let remaining = ballastBytes; remaining > 0 && !ended.signal.aborted; remaining -= block.length)
          await file.write(block, 0, Math.min(remaining, block.length))
        await file.sync()
      }
      if (ended.signal.aborted) await rm(partial, { force: true })
      else await rename(partial, ballast)
    } catch (cause) {
      await rm(partial, { force: true })
      log.warn('The ballast file could not be written', { file: ballast }, cause)
    }
  }

  const measureAndReschedule = () => {
    measure()
      .catch((cause: unknown) => log.warn('The free disk space could not be measured', { directory }, cause))
      .finally(() => {
        if (!ended.signal.aborted) timer = setTimeout(measureAndReschedule, intervalMs).unref()
      })
  }
  let timer: NodeJS.Timeout | undefined
  await measure()
  timer = setTimeout(measureAndReschedule, intervalMs).unref()

  return {
    room: (): DiskState => room,
    /** Why it is read-only, as a sentence; true if it is writable. */
    writable: () =>
      room === 'enough' ||
      `The disk that holds ${directory} has ${mebibytes(free)} MiB free and needs ${mebibytes(minFreeBytes)}; ` +
        'no new work is accepted until there is space.',
    /** Call it when a write failed because the disk is full and the ballast was removed. */
    full() {
      fullUntil = performance.now() + fullHoldMs
      setState('full')
    },
    close() {
      ended.abort()
      clearTimeout(timer)
    },
  }
}

export type Space = Awaited<ReturnType<typeof openSpace>>

const mebibytes = (bytes: number): number => Math.floor(bytes / (1 << 20))
