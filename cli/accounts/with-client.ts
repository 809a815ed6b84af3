import { dataDirectory, remoteServer } from '../../core/config.ts'
import { type Client, openClient } from '../client/client.ts'
import { runningServer } from '../client/server-file.ts'

/**
 * Runs work with the server at INFER_URL, else with the same routes in this process, on the data directory. `stopsWork`:
 * with a server that runs on this machine instead, because only the server can stop what it runs. `readsUsage`: with the
 * routes of usage and organizations, which need no master key.
 */
export async function withClient<T>(
  dataDir: string | undefined,
  work: (client: Client) => Promise<T>,
  { stopsWork = false, readsUsage = false } = {},
): Promise<T> {
  const folder = dataDirectory(dataDir)
  if (remoteServer() || (stopsWork && runningServer(folder))) return work(openClient(folder))
  const { openInProcess, openUsageInProcess } = await import('./in-process.ts')
  const { client, close } = await (readsUsage ? openUsageInProcess : openInProcess)(folder)
  try {
    return await work(client)
  } finally {
    await close()
  }
}
