import { remoteServer } from '../../../core/config.ts'
import { openClient } from '../../client/client.ts'
import { runningServer } from '../../client/find-server.ts'
import { detailOf, modelStatusOf } from '../../models/status.ts'
import type { ReleaseKind } from './release-kinds.ts'

/**
 * The versions of an engine that models of the server on this data directory name, whatever file it reads; null where it
 * runs and does not tell. Rejects only with the reason of the signal.
 */
export async function servedVersions(
  dataDir: string,
  { name }: Pick<ReleaseKind, 'name'>,
  signal: AbortSignal,
): Promise<ReadonlySet<string> | null> {
  if (!runningServer(dataDir)) return new Set()
  // Requests would go to the server of INFER_URL.
  if (remoteServer() !== undefined) return null
  try {
    const client = openClient(dataDir)
    const { models } = await modelStatusOf(client, signal)
    const versions = new Set<string>()
    for (const { model_id, engine } of models) {
      if (engine !== undefined && engine !== name) continue
      const { settings } = await detailOf(client, model_id, signal)
      if (settings.engine === name && typeof settings.engine_version === 'string') versions.add(settings.engine_version)
    }
    return versions
  } catch {
    signal.throwIfAborted()
    return null
  }
}
