import { setTimeout as pause } from 'node:timers/promises'
import { type LogBytes, openLogBytes } from '../log-bytes.ts'
import type { ClusterApi } from './cluster-api.ts'
import { containers } from './pod-state.ts'

const retryMs = 1_000

/** The output of an engine, which the cluster forgets with its pod. */
export interface PodLog {
  bytes: LogBytes
  /** Resolves when it was read to its end. */
  read: Promise<void>
  close(): void
}

/**
 * Follows what the container of an engine prints, from its first byte that the cluster still has. `begun` resolves when it has
 * started; `isOver` says whether it has ended. After an error it goes on where it was.
 */
export function openPodLog(
  api: ClusterApi,
  name: string,
  { begun, isOver }: { begun: Promise<void>; isOver: () => boolean },
): PodLog {
  const bytes = openLogBytes()
  const closing = new AbortController()
  const path = `/api/v1/namespaces/${api.namespace}/pods/${name}/log`
  const query = { container: containers.engine, follow: 'true' }

  async function follow(): Promise<void> {
    await begun
    for (let known = 0; !closing.signal.aborted; ) {
      // Asked before: what is printed later belongs to a later attempt.
      const last = isOver()
      try {
        let skip = known
        for await (const chunk of api.stream({ path, query }, closing.signal)) {
          const fresh = chunk.subarray(Math.min(skip, chunk.length))
          skip -= chunk.length - fresh.length
          known += fresh.length
          if (fresh.length > 0) bytes.push(fresh)
        }
        if (last || isOver()) return
      } catch {
        if (last) return
      }
      await pause(retryMs, undefined, { signal: closing.signal, ref: false }).catch(() => {})
    }
  }

  const read = follow()
  void read.then(() => bytes.end())
  return { bytes, read, close: () => closing.abort() }
}
