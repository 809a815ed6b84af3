import { createPrivateKey, createPublicKey, createSecretKey, verify } from 'node:crypto'
import OpenAI from 'openai'
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import {
  activeSecrets,
  falHeaders,
  publicJwk,
  secretHint,
  secretText,
  standardHeaders,
} from '../../../core/webhooks/signature.ts'

const key = createSecretKey(Buffer.alloc(32, 1))
const state = (version: number, previousUntil: number | null = null) => ({ version, previousUntil })
const body = '{"id":"evt_1","text":"ä \\u0000 😀"}'

test('standardwebhooks and openai accept the signature, and refuse another body, id or secret', async () => {
  const secret = secretText(key, 'whe_1', state(1))
  const headers = standardHeaders(activeSecrets(key, 'whe_1', state(1), 0), { id: 'msg_1', at: Date.now(), body })
  expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body))
  const client = new OpenAI({ apiKey: 'x' })
  expect(await client.webhooks.unwrap(body, headers, secret)).toEqual(JSON.parse(body))
  for (const wrong of [
    () => new Webhook(secret).verify(`${body} `, headers),
    () => new Webhook(secret).verify(body, { ...headers, 'webhook-id': 'msg_2' }),
    () => new Webhook(secretText(key, 'whe_2', state(1))).verify(body, headers),
    () => new Webhook(secretText(key, 'whe_1', state(2))).verify(body, headers),
  ])
    expect(wrong).toThrow()
  await expect(client.webhooks.unwrap(`${body} `, headers, secret)).rejects.toThrow()
})

test('the example of the Standard Webhooks specification', () => {
  const secret = Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64')
  const at = 1_614_265_330_000
  const id = 'msg_p5jXN8AQM9LWM0D4loKWxJek'
  expect(standardHeaders([secret], { id, at, body: '{"test": 2432232314}' })).toEqual({
    'webhook-id': id,
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  })
})

test.each([
  [state(1), 1],
  [state(1, 2_000), 1],
  [state(2), 1],
  [state(2, 1_000), 1],
  [state(2, 1_001), 2],
  [state(7, 5_000), 2],
])('of %j so many secrets sign at 1,000: %i', (given, count) => {
  const secrets = activeSecrets(key, 'whe_1', given, 1_000)
  expect(secrets).toHaveLength(count)
  expect(`whsec_${secrets[0]!.toString('base64')}`).toBe(secretText(key, 'whe_1', given))
})

test('each owner and each version has another secret of 32 bytes', () => {
  const secrets = ['whe_1', 'whe_2', 'org_1'].flatMap(owner =>
    [1, 2, 12].map(version => secretText(key, owner, state(version))),
  )
  expect(new Set(secrets).size).toBe(9)
  for (const secret of secrets) {
    expect(Buffer.from(secret.slice('whsec_'.length), 'base64')).toHaveLength(32)
    expect(secretHint(secret)).toMatch(/^whsec_…[\w+/]{4}$/)
  }
})

test("fal's signature: Ed25519 over four lines, in hexadecimal, with the published key", () => {
  const seed = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), Buffer.alloc(32, 7)])
  const signing = createPrivateKey({ key: seed, format: 'der', type: 'pkcs8' })
  const headers = falHeaders(signing, { requestId: 'q_1', userId: 'org_1', at: 1_700_000_000_999, body: '{}' })
  expect(headers).toMatchObject({
    'x-fal-webhook-request-id': 'q_1',
    'x-fal-webhook-user-id': 'org_1',
    'x-fal-webhook-timestamp': '1700000000',
  })
  const digest = '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a'
  const jwk = publicJwk(signing)
  expect(jwk).toMatchObject({ kty: 'OKP', crv: 'Ed25519', use: 'sig', alg: 'EdDSA' })
  expect(
    verify(
      null,
      Buffer.from(`q_1\norg_1\n1700000000\n${digest}`),
      createPublicKey({ key: { kty: jwk.kty, crv: jwk.crv, x: jwk.x }, format: 'jwk' }),
      Buffer.from(headers['x-fal-webhook-signature']!, 'hex'),
    ),
  ).toBe(true)
})
