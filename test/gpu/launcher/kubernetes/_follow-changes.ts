import { setTimeout as pause } from 'node:timers/promises'
import type { ClusterApi } from '../../../../gpu/launcher/kubernetes/cluster-api.ts'

/** Calls `seen` with each change of a collection, as a controller learns of them, until the signal aborts. */
export async function followChanges(
  api: ClusterApi,
  path: string,
  seen: (type: string, object: never) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  let from = '0'
  while (!signal.aborted)
    try {
      const decoder = new TextDecoder()
      let rest = ''
      for await (const bytes of api.stream({ path, query: { watch: '1', resourceVersion: from } }, signal)) {
        const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
        rest = lines.pop()!
        for (const line of lines.filter(Boolean)) {
          const { type, object } = JSON.parse(line) as {
            type: string
            object: { metadata: { resourceVersion: string } }
          }
          from = object.metadata.resourceVersion
          await seen(type, object as never).catch(() => {})
        }
      }
    } catch {
      await pause(50, undefined, { ref: false })
    }
}
