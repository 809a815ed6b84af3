import { dataDirectory, remote } from '../../core/config.ts'
import { runningServer } from '../client/server-file.ts'
import type { AccountClient } from './account-client.ts'

/**
 * Runs work with the server at INFER_URL, else with the store of this machine. `stopsWork`: over HTTP also if a server
 * runs on this machine, because only the server can stop what it runs.
 */
export async function withAccountClient(
  dataDir: string | undefined,
  work: (client: AccountClient) => Promise<void>,
  { stopsWork = false } = {},
): Promise<void> {
  const client = await openAccountClient(dataDirectory(dataDir), stopsWork)
  try {
    await work(client)
  } finally {
    await client.close()
  }
}

async function openAccountClient(dataDir: string, stopsWork: boolean): Promise<AccountClient> {
  if (remote() || (stopsWork && runningServer(dataDir))) {
    const [{ openRemoteAccountClient }, { openClient }] = [
      await import('./remote-account-client.ts'),
      await import('../client/client.ts'),
    ]
    return openRemoteAccountClient(openClient(dataDir))
  }
  const [{ openLocalAccountClient }, { openInstallation }] = [
    await import('./local-account-client.ts'),
    await import('./installation.ts'),
  ]
  return openLocalAccountClient(await openInstallation(dataDir))
}
