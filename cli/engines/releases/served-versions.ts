import { basename } from 'node:path'
import { remoteServer } from '../../../core/config.ts'
import { openClient } from '../../client/client.ts'
import { runningServer } from '../../client/find-server.ts'
import { detailOf, modelStatusOf } from '../../models/status.ts'

/**
 * The versions of these engines that models of the server on this data directory name, whatever file it reads; null where it
 * runs and does not tell. Rejects only with the reason of the signal.
 */
export async function servedVersions(
  dataDir: string,
  engines: readonly string[],
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
      if (engine !== undefined && !engines.includes(engine)) continue
      const { settings } = await detailOf(client, model_id, signal)
      if (!engines.includes(String(settings.engine))) continue
      if (typeof settings.engine_version === 'string') versions.add(settings.engine_version)
      // The path of a Python environment may be that of a version.
      if (typeof settings.environment === 'string') versions.add(basename(settings.environment))
    }
    return versions
  } catch {
    signal.throwIfAborted()
    return null
  }
}
