import { dataDirectory, remoteServer } from '../../core/config.ts'
import { type Client, openClient } from '../client/client.ts'
import { runningServer } from '../client/server-file.ts'

/**
 * Runs work with the server at INFER_URL, else with the same routes in this process, on the data directory. `stopsWork`:
 * with a server that runs on this machine instead, because only the server can stop what it runs.
 */
export async function withClient<T>(
  dataDir: string | undefined,
  work: (client: Client) => Promise<T>,
  { stopsWork = false } = {},
): Promise<T> {
  const folder = dataDirectory(dataDir)
  if (remoteServer() || (stopsWork && runningServer(folder))) return work(openClient(folder))
  const { openInProcess } = await import('./in-process.ts')
  const { client, close } = await openInProcess(folder)
  try {
    return await work(client)
  } finally {
    await close()
  }
}
