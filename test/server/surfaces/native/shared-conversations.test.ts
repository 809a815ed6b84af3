import sharp from 'sharp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../../_app.ts'
import { makeOrganization } from '../../_organization.ts'

const base = '/api/conversations'
let app: TestApp
let organizationId: string
let token: string
/** Of an organization whose files the other one names. */
let stranger: string

async function ok<T>(method: string, path: string, body?: unknown, by = token): Promise<T> {
  const response = await app.fetch(path, { method, token: by, ...(body === undefined ? {} : { body }) })
  const answer = await response.json()
  expect(response.status, JSON.stringify(answer)).toBeLessThan(300)
  return answer as T
}
const allow = (call_storage: string, id = organizationId, by = token) =>
  ok('PATCH', `/api/organizations/${id}`, { call_storage }, by)

interface Link {
  id: string
  url: string
  created_at: number
  expires_at: number
}
const pathOf = (url: string) => new URL(url).pathname
/** Reads as somebody who has only the link. */
async function read(path: string) {
  const response = await app.fetch(path, { token: null })
  return {
    status: response.status,
    body: (await response.json()) as Record<string, never> & { error: { message: string } },
  }
}

async function image(by: string): Promise<string> {
  const bytes = await sharp({ create: { width: 8, height: 8, channels: 3, background: 'teal' } })
    .png()
    .toBuffer()
  const form = new FormData()
  form.set('purpose', 'user_data')
  form.set('file', new Blob([new Uint8Array(bytes)], { type: 'image/png' }), 'teal.png')
  const stored = await fetch(`${app.url}/std/v1/files`, {
    method: 'POST',
    headers: { authorization: `Bearer ${by}` },
    body: form,
  })
  return ((await stored.json()) as { id: string }).id
}

async function conversation(files: object[] = []) {
  return await ok<{ id: string }>('POST', base, {
    title: 'About quines',
    system: 'a secret prompt',
    parameters: { temperature: 0.123 },
    current_id: 'd',
    messages: [
      { id: 'a', parent_id: null, role: 'user', text: 'What is a quine?', files },
      { id: 'b', parent_id: 'a', role: 'assistant', text: 'Another branch.' },
      {
        id: 'c',
        parent_id: 'a',
        role: 'assistant',
        text: '<think>hidden</think>A program.',
        model: 'm',
        reasoning: 'hidden too',
      },
      { id: 'd', parent_id: 'c', role: 'tool', text: 'hidden result', tool_call_id: '1' },
    ],
  })
}
const share = (id: string, body: object = {}) => ok<Link>('POST', `${base}/${id}/links`, body)

beforeAll(async () => {
  app = await startApp({ limits: { link_reads_per_minute: 100 }, trusted_proxies: ['127.0.0.1'] })
  const scopes = ['user:read', 'user:write', 'admin:read', 'admin:write'] as const
  const made = await makeOrganization(app, { scopes: [...scopes] })
  organizationId = made.organizationId
  token = made.secret
  stranger = (await makeOrganization(app, { scopes: [...scopes] })).secret
  await allow('content')
})
afterAll(() => app[Symbol.asyncDispose]())

test('whoever has a link reads what was said in the branch of its time, and its images', async () => {
  const [own, foreign] = [await image(token), await image(stranger)]
  const named = (id: string, kind = 'image') => ({ id, kind, name: 'x.png' })
  const { id } = await conversation([
    named(own),
    named(foreign),
    named('https://example.com/x.png'),
    named(own, 'text'),
  ])
  const link = await share(id, { expires_in: 3_600 })
  expect(link.expires_at - link.created_at).toBe(3_600)
  await ok('PATCH', `${base}/${id}`, {
    current_id: 'e',
    messages: [{ id: 'e', parent_id: 'd', role: 'user', text: 'said later' }],
  })
  const path = pathOf(link.url)
  const file = (of: string) => `${path}/files/${of}`
  expect(await read(`${path}/conversation`)).toEqual({
    status: 200,
    body: {
      title: 'About quines',
      expires_at: link.expires_at,
      messages: [
        {
          role: 'user',
          text: 'What is a quine?',
          model: null,
          files: [
            { kind: 'image', name: 'x.png', url: file(own) },
            { kind: 'image', name: 'x.png', url: file(foreign) },
            { kind: 'image', name: 'x.png', url: null },
            { kind: 'text', name: 'x.png', url: null },
          ],
        },
        { role: 'assistant', text: 'A program.', model: 'm', files: [] },
      ],
    },
  })
  const shown = await app.fetch(file(own), { token: null })
  expect([shown.status, shown.headers.get('content-type'), shown.headers.get('cache-control')]).toEqual([
    200,
    'image/png',
    'private, max-age=0',
  ])
  await shown.bytes()
  // An id in a message is no right to read a file of another organization, or one that no message shows.
  expect((await read(file(foreign))).status).toBe(404)
  expect((await read(file(await image(token)))).status).toBe(404)
  const page = await app.fetch(path, { token: null })
  expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
  expect([page.status, page.headers.get('x-robots-tag'), page.headers.get('referrer-policy')]).toEqual([
    200,
    'noindex',
    'no-referrer',
  ])
  expect(await page.text()).not.toContain('quine')
})

test('a link ends when it is revoked, when the conversation is deleted, and while the organization stores no content', async () => {
  const { id } = await conversation()
  const [first, second] = [await share(id), await share(id)]
  const listed = await ok<{ links: Link[] }>('GET', `${base}/${id}/links`)
  expect(listed.links).toEqual([second, first])
  const messageOf = async ({ url }: Link) => {
    const { status, body } = await read(`${pathOf(url)}/conversation`)
    expect(status).toBe(410)
    return body.error.message
  }
  await ok('DELETE', `${base}/${id}/links/${first.id}`)
  expect(await messageOf(first)).toContain('was revoked')
  await allow('metadata')
  expect(await messageOf(second)).toContain('no longer stores content')
  const refused = await app.fetch(`${base}/${id}/links`, { token, body: {} })
  expect(refused.status).toBe(403)
  await allow('content')
  await ok('DELETE', `${base}/${id}`)
  expect(await messageOf(second)).toContain('was deleted')
})

test('while the organization is suspended, its links are as those that were revoked', async () => {
  const { id } = await conversation([{ id: await image(token), kind: 'image', name: 'x.png' }])
  const path = pathOf((await share(id)).url)
  const shown = (await read(`${path}/conversation`)).body as unknown as { messages: { files: { url: string }[] }[] }
  const ends = [`${path}/conversation`, shown.messages[0]!.files[0]!.url]
  await ok('POST', `/api/organizations/${organizationId}/suspend`, {}, app.secret)
  const answers = await Promise.all(ends.map(read))
  await ok('POST', `/api/organizations/${organizationId}/resume`, {}, app.secret)
  for (const { status, body } of answers) {
    expect(status).toBe(410)
    expect(body.error.message).toContain('This link was revoked.')
  }
  for (const end of ends) expect((await app.fetch(end, { token: null })).status).toBe(200)
})

test('a client that reads too often waits, and others do not', async () => {
  const { id } = await conversation()
  const path = pathOf((await share(id)).url)
  const from = (address: string, end: string) =>
    app.fetch(`${path}/${end}`, { token: null, headers: { 'x-forwarded-for': address } })
  for (const end of ['conversation', 'files/file-absent']) {
    const client = `203.0.113.${end.length}`
    let refused = await from(client, end)
    while (refused.status !== 429) refused = await from(client, end)
    expect(((await refused.json()) as { error: { message: string } }).error.message).toMatch(
      /^Shared conversations may be read 100 times a minute from one address. Wait \d+ s.$/,
    )
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  }
  expect((await from('203.0.113.1', 'conversation')).status).toBe(200)
})

test('only the owner makes, lists and revokes links', async () => {
  const { id } = await conversation()
  const { id: link } = await share(id)
  await allow(
    'content',
    (await ok<{ organization: { id: string } }>('GET', '/api/me', undefined, stranger)).organization.id,
    stranger,
  )
  for (const [method, path] of [
    ['GET', `${base}/${id}/links`],
    ['POST', `${base}/${id}/links`],
    ['DELETE', `${base}/${id}/links/${link}`],
  ] as const)
    expect(
      (await app.fetch(path, { method, token: stranger, ...(method === 'POST' ? { body: {} } : {}) })).status,
    ).toBe(404)
})

test.each([3_599, 2_592_001, 'week'])('a link for %j seconds is refused', async expires_in => {
  const { id } = await conversation()
  expect((await app.fetch(`${base}/${id}/links`, { token, body: { expires_in } })).status).toBe(400)
})

test('a token that was changed in any part is of no link, and guessing is slowed down', async () => {
  const { id } = await conversation()
  const link = await share(id)
  const [, , given = ''] = pathOf(link.url).split('/')
  const [name = '', expires = '', signature = ''] = given.split('.')
  const later = String(Number(expires) + 1)
  for (const changed of [
    [name, later, signature].join('.'),
    [name, expires, signature.replace(/^./, one => (one === 'A' ? 'B' : 'A'))].join('.'),
    [`${name.slice(0, -1)}${name.endsWith('0') ? '1' : '0'}`, expires, signature].join('.'),
    name,
    '..',
  ]) {
    const answer = await read(`/shared/${changed}/conversation`)
    expect([changed, answer.status]).toEqual([changed, 404])
  }
  await expect.poll(async () => (await read('/shared/link.1.x/conversation')).status, { interval: 5 }).toBe(429)
})
