import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../_app.ts'

const built = existsSync(join(import.meta.dirname, '../../../dist/assets/docs/guides.json'))
const policy =
  "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

describe.skipIf(!built)('the guides', () => {
  let app: TestApp
  beforeAll(async () => void (app = await startApp()))
  afterAll(() => app[Symbol.asyncDispose]())
  const ask = async (path: string, headers: Record<string, string> = {}) => {
    const response = await app.fetch(path, { token: null, headers })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }

  test('are listed, each is a page, and none needs a token', async () => {
    const list = await ask('/docs/guides')
    expect([list.status, list.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    const paths = new Set([...list.text.matchAll(/href="(\/docs\/guides\/[a-z-]+)"/g)].map(([, path]) => path!))
    expect(paths.size).toBeGreaterThan(5)
    for (const path of paths) {
      const { status, text, headers } = await ask(path)
      expect([path, status, headers.get('content-security-policy')]).toEqual([path, 200, policy])
      expect(text).toMatch(/<h1>[^<]+<\/h1>/)
      expect(headers.get('referrer-policy')).toBe('no-referrer')
    }
  })

  test('load their styles from this server', async () => {
    const { status, headers, text } = await ask('/docs/style.css')
    expect([status, headers.get('content-type')]).toEqual([200, 'text/css; charset=utf-8'])
    expect(text).toContain('light-dark(')
    expect(text).not.toMatch(/https?:\/\/|@import/)
  })

  test('are linked with the configuration reference', async () => {
    const { status, text, headers } = await ask('/docs/configuration')
    expect([status, headers.get('content-security-policy')]).toEqual([200, policy])
    expect(text).toContain('<h3 id="limitsupload_size">')
  })

  test.each([
    ['/docs/guides/job', 'Did you mean /docs/guides/jobs?'],
    ['/docs/guides/nothing-like-it', 'There is no guide with this name. /docs/guides lists all guides.'],
    ['/docs/guides/..%2f..%2fpackage', 'There is no guide with this name.'],
    ['/docs/images/nothing.webp', 'The guides have no such picture.'],
    ['/docs/images/..%2fscalar.js', 'The guides have no such picture.'],
  ])('%s is 404, with a hint where to look', async (path, message) => {
    const { status, text } = await ask(path)
    expect(status).toBe(404)
    expect((JSON.parse(text) as { error: { message: string } }).error.message).toContain(message)
  })

  test('refuse subresource requests of other sites', async () => {
    const foreign = { 'sec-fetch-site': 'cross-site' }
    expect((await ask('/docs/guides/jobs', foreign)).text).toBe('')
    expect((await ask('/docs/guides/jobs', { ...foreign, 'sec-fetch-dest': 'document' })).text).toContain('<h1>')
  })
})
