import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { clientOf } from '../../../cli/client/client.ts'

/** Starts a server that answers every request with this body. */
async function serverAnswering(body: string): Promise<string> {
  const server = createServer((_, res) => res.setHeader('content-type', 'application/json').end(body))
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
