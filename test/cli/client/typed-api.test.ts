import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { organizationsOf, ownOrganization, usersOf } from '../../../cli/accounts/account-client.ts'
import { clientOf, memberOf } from '../../../cli/client/client.ts'
import { openTokenClient } from '../../../cli/tokens/token-client.ts'

/** Starts a server that answers every request with this body. */
async function serverAnswering(body: string, headers: Record<string, string> = {}): Promise<string> {
  const server = createServer((_, res) =>
    res.writeHead(200, { 'content-type': 'application/json', ...headers }).end(body),
  )
  await new Promise<void>(listening => server.listen(0, '127.0.0.1', listening))
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test.each(['{}', '[]', '{"data":"text"}', '<html>'])(
  'an answer that is not from infer is reported as such: %s',
  async body => {
    const url = await serverAnswering(body)
    const { api } = clientOf({ url, token: 'none', isRemote: true }, '')
    await expect(api.GET('/api/me')).rejects.toThrow(
      `This version of infer cannot read the response of ${url}/api/me. Is it an infer server of another version?`,
    )
  },
)

test.each([
  '{}',
  '[]',
  'null',
  '{"organization":null,"organizations":null,"next_cursor":null}',
  '{"organizations":[]}',
])('an answer of another form is reported as that of another version: %s', async body => {
  const url = await serverAnswering(body, { 'x-request-id': 'req_1' })
  const client = clientOf({ url, token: 'none', isRemote: true }, '')
  const tokens = openTokenClient(client)
  for (const call of [
    () => ownOrganization(client),
    () => organizationsOf(client),
    () => usersOf(client, 'org_1'),
    () => memberOf(client.api.POST('/api/organizations', { body: { name: 'acme' } }), 'organization'),
    () => tokens.list({ organization: 'org_1', status: undefined }),
  ])
    await expect(call()).rejects.toThrow('Is it an infer server of another version?')
})

test('the headers of a request of the typed API are sent', async () => {
  let seen: unknown
  const server = createServer((req, res) => {
    seen = req.headers['idempotency-key']
    res.writeHead(200, { 'content-type': 'application/json', 'x-request-id': 'req_1' }).end('{}')
  })
  await new Promise<void>(listening => server.listen(0, '127.0.0.1', listening))
  onTestFinished(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  await clientOf({ url, token: 'none', isRemote: true }, '').api.GET('/api/me', { headers: { 'idempotency-key': 'a' } })
  expect(seen).toBe('a')
})
