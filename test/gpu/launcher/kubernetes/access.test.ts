import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openClusterAccess } from '../../../../gpu/launcher/kubernetes/cluster-access.ts'
import { credentialsIn } from '../../../../gpu/launcher/kubernetes/exec-credentials.ts'
import { clusterSettingsIn } from '../../../../gpu/launcher/kubernetes/kubeconfig.ts'
import { temporary } from '../_launch.ts'

const encoded = (text: string) => Buffer.from(text).toString('base64')

const config = (cluster: object = {}, user: object = { token: 't' }, more: object = {}) => ({
  'current-context': 'c',
  contexts: [
    { name: 'c', context: { cluster: 'k', user: 'u', namespace: 'n' } },
    { name: 'other', context: { cluster: 'gone', user: 'u' } },
  ],
  clusters: [{ name: 'k', cluster: { server: 'https://k:6443/', ...cluster } }],
  users: [{ name: 'u', user }],
  ...more,
})

test('a kubeconfig names the cluster and its user', () => {
  const whole = config(
    { 'certificate-authority': 'ca.pem', 'tls-server-name': 'kube' },
    { 'client-certificate-data': encoded('CERT'), 'client-key': '/k.pem' },
  )
  expect(clusterSettingsIn(whole, '/home/u/.kube/config')).toEqual({
    server: 'https://k:6443',
    authority: { file: '/home/u/.kube/ca.pem' },
    serverName: 'kube',
    namespace: 'n',
    user: { certificate: { data: 'CERT' }, key: { file: '/k.pem' } },
  })
  const exec = { command: './login', apiVersion: 'client.authentication.k8s.io/v1', env: [{ name: 'A', value: 'b' }] }
  expect(clusterSettingsIn(config({}, { exec }), '/k/config').user).toEqual({
    exec: { command: '/k/login', args: [], env: { A: 'b' }, apiVersion: exec.apiVersion },
  })
})

test.each<[name: string, value: unknown, context: string | undefined, message: RegExp]>([
  ['something else', { clusters: 'x' }, undefined, /\/f is no kubeconfig: 'clusters' is missing or wrong/],
  ['no current context', config({}, {}, { 'current-context': '' }), undefined, /no current context. Set 'context'/],
  ['an unknown context', config(), 'nope', /no context 'nope'/],
  ['a cluster that is not there', config(), 'other', /no cluster 'gone', which its context 'other' names/],
  ['a user that is not there', config({}, {}, { users: [] }), undefined, /no user 'u'/],
  ['an address without TLS', config({ server: 'http://k' }), undefined, /has no https address: http:\/\/k/],
  ['no check of the certificate', config({ 'insecure-skip-tls-verify': true }), undefined, /anybody could read keys/],
  ['a proxy', config({ 'proxy-url': 'http://p' }), undefined, /proxy-url, which infer does not support/],
  ['a password', config({}, { username: 'a' }), undefined, /authentication that Kubernetes has removed/],
])('a kubeconfig with %s is refused', (_name, value, context, message) =>
  expect(() => clusterSettingsIn(value, '/f', context)).toThrow(message),
)

const credentials = (status: object) => JSON.stringify({ kind: 'ExecCredential', status })
test.each<[text: string, found: object | undefined]>([
  [credentials({ token: 't' }), { token: 't' }],
  [credentials({ token: 't', expirationTimestamp: '1970-01-01T00:00:01Z' }), { token: 't', expiresAt: 1_000 }],
  [credentials({ clientCertificateData: 'C', clientKeyData: 'K' }), { certificate: 'C', key: 'K' }],
  [credentials({ clientCertificateData: 'C' }), undefined],
  ['nothing', undefined],
])('%s', (text, found) => expect(credentialsIn(text)).toEqual(found))

const signal = () => AbortSignal.timeout(20_000)

test('in a pod its service account is used, and its token is read again once it was refused', async () => {
  const folder = temporary()
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text)
  write('token', 'first\n')
  write('ca.crt', 'CA')
  write('namespace', 'inference')
  const host = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '6443' }
  const access = await openClusterAccess({}, host, folder)
  expect([access.server, access.namespace, await access.authority()]).toEqual([
    'https://[fd00::1]:6443',
    'inference',
    'CA',
  ])
  expect(await access.credentials(signal())).toEqual({ token: 'first' })
  write('token', 'second')
  access.refused()
  expect(await access.credentials(signal())).toEqual({ token: 'second' })
})

test('credentials of a program are kept until they expire, and a program that fails says why', async () => {
  const folder = temporary()
  const program = join(folder, 'login')
  const path = join(folder, 'config')
  const script = (words: string) => {
    writeFileSync(program, `#!/bin/sh\n${words}\n`)
    chmodSync(program, 0o755)
  }
  const exec = { command: './login', apiVersion: 'client.authentication.k8s.io/v1' }
  writeFileSync(path, JSON.stringify(config({}, { exec })))
  const open = () => openClusterAccess({ kubeconfig: path }, process.env)
  script(`echo '${credentials({ token: 'of-it' })}'; echo run >> ${folder}/runs; test -n "$KUBERNETES_EXEC_INFO"`)
  const access = await open()
  expect([await access.credentials(signal()), await access.credentials(signal())]).toEqual([
    { token: 'of-it' },
    { token: 'of-it' },
  ])
  script('echo "please log in." >&2; exit 3')
  const other = await open()
  await expect(other.credentials(signal())).rejects.toThrow(/gives no credentials for the cluster: please log in\./)
  await expect(openClusterAccess({ kubeconfig: '/no/such' }, {})).rejects.toThrow(
    /\/no\/such cannot be read \(ENOENT\)/,
  )
})
