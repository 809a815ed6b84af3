import { dataDirectory, remote } from '../../core/config.ts'
import type { TokenClient } from './token-client.ts'

/** Runs the work with the tokens of this machine or, with INFER_URL, of that server. */
export async function withTokenClient(
  dataDir: string | undefined,
  work: (client: TokenClient) => Promise<void>,
): Promise<void> {
  const client = await openTokenClient(dataDirectory(dataDir))
  try {
    await work(client)
  } finally {
    await client.close()
  }
}

async function openTokenClient(dataDir: string): Promise<TokenClient> {
  if (remote()) {
    const [{ openRemoteTokenClient }, { openClient }] = [
      await import('./remote-token-client.ts'),
      await import('../client/client.ts'),
    ]
    return openRemoteTokenClient(openClient(dataDir))
  }
  const [{ openLocalTokenClient }, { openInstallation }] = [
    await import('./local-token-client.ts'),
    await import('../accounts/installation.ts'),
  ]
  return openLocalTokenClient(await openInstallation(dataDir))
}
