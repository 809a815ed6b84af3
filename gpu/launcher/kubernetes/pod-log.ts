import { setTimeout as pause } from 'node:timers/promises'
import { type LogBytes, openLogBytes } from '../log-bytes.ts'
import type { ClusterApi } from './cluster-api.ts'
import { partLines } from './part-lines.ts'
import { containers } from './pod-state.ts'

const retryMs = 1_000

/** The output of an engine, which the cluster forgets with its pods. */
export interface PodLog {
  bytes: LogBytes
  /** Resolves when it was read to its end. */
  read: Promise<void>
  /** These pods, by their places in the list, have begun to print. */
  begin(ranks: Iterable<number>): void
  close(): void
}

/**
 * Follows what the containers of an engine print in its pods, each from its first byte that the cluster still has: bytes as they
 * come of one pod, whole lines of several. `isOver` says whether the engine has ended. After an error it goes on where it was.
 */
export function openPodLog(api: ClusterApi, names: readonly string[], isOver: () => boolean): PodLog {
  const bytes = openLogBytes()
  const closing = new AbortController()
  const query = { container: containers.engine, follow: 'true' }
  const begun = names.map(() => Promise.withResolvers<void>())

  async function follow(name: string, rank: number): Promise<void> {
    const path = `/api/v1/namespaces/${api.namespace}/pods/${name}/log`
    const lines = names.length > 1 ? partLines(rank, part => bytes.push(part)) : undefined
    await begun[rank]!.promise
    for (let known = 0; !closing.signal.aborted; ) {
      // Asked before: what is printed later belongs to a later attempt.
      const last = isOver()
      try {
        let skip = known
        for await (const chunk of api.stream({ path, query }, closing.signal)) {
          const fresh = chunk.subarray(Math.min(skip, chunk.length))
          skip -= chunk.length - fresh.length
          known += fresh.length
          if (fresh.length === 0) continue
          if (lines) lines.push(fresh)
          else bytes.push(fresh)
        }
        if (last || isOver()) break
      } catch {
        if (last) break
      }
      await pause(retryMs, undefined, { signal: closing.signal, ref: false }).catch(() => {})
    }
    lines?.end()
  }

  const read = Promise.all(names.map(follow)).then(() => {})
  void read.then(() => bytes.end())
  return {
    bytes,
    read,
    begin(ranks) {
      for (const rank of ranks) begun[rank]?.resolve()
    },
    close() {
      closing.abort()
      for (const { resolve } of begun) resolve()
    },
  }
}
