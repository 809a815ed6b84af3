import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Log } from '../../../core/log.ts'
import { openDownload } from '../../../core/media/fetch.ts'

const folder = mkdtempSync(join(tmpdir(), 'infer-download-'))
const server = createServer((_request, response) => void response.end('an image'))
beforeAll(() => new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve)))
afterAll(() => {
  server.close()
  rmSync(folder, { recursive: true })
})

const log = { info() {} } as unknown as Log
function downloaded(allowed: string[], name: string, maxBytes = 100) {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/a.png`
  const download = openDownload({ media: { allowed_addresses: allowed }, log })
  return download({ organizationId: 'o', url, path: join(folder, name), maxBytes })
}

test('the file at an allowed URL is stored', async () => {
  await downloaded(['127.0.0.1'], 'one')
  expect(readFileSync(join(folder, 'one'), 'utf8')).toBe('an image')
})

test.each<[what: string, allowed: string[], maxBytes: number]>([
  ['a private address', [], 100],
  ['a file that is too large', ['127.0.0.1'], 3],
])('%s is refused', async (what, allowed, maxBytes) => {
  await expect(downloaded(allowed, what, maxBytes)).rejects.toMatchObject({ code: 'url_fetch_failed' })
})
