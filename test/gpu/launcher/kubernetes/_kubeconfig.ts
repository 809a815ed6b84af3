import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Writes a kubeconfig with the token of somebody. */
export function writeKubeconfig(
  folder: string,
  {
    who,
    url,
    token,
    authority,
    serverName,
  }: { who: string; url: string; token: string; authority: string; serverName: string },
): string {
  const path = join(folder, `kubeconfig-${who}`)
  const data = Buffer.from(authority).toString('base64')
  const cluster = { server: url, 'certificate-authority-data': data, 'tls-server-name': serverName }
  const text = JSON.stringify({
    'current-context': 'test',
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    clusters: [{ name: 'test', cluster }],
    users: [{ name: 'test', user: { token } }],
  })
  writeFileSync(path, text)
  return path
}
