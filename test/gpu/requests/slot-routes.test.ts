import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { slotRoutesAt } from '../../../gpu/requests/slot-routes.ts'
import { fakeEngine } from '../../_app.ts'
import { freePort } from '../../_engine.ts'
import { tinyLora } from '../../_lora.ts'
import { file } from '../engines/gguf/_engine.ts'
import { temporary } from '../launcher/_launch.ts'

/** llama.cpp's own server, where it is installed: named by INFER_TEST_LLAMA_SERVER or found on PATH. */
const real = process.env.INFER_TEST_LLAMA_SERVER ?? 'llama-server'
const isThere = spawnSync(real, ['--version']).status === 0

/** Starts a server with two slots. Returns its address. */
async function start(program: string[], more: string[]): Promise<string> {
  const port = String(await freePort())
  const options = ['--host', '127.0.0.1', '--port', port, '-np', '2', '-c', '1024', '--jinja', '--slots', '--offline']
  const child = spawn(program[0]!, [...program.slice(1), ...options, ...more], { stdio: 'ignore' })
  const exited = once(child, 'exit')
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await exited
  })
  const url = `http://127.0.0.1:${port}`
  await expect
    .poll(
      () =>
        fetch(`${url}/health`).then(
          ({ status }) => status,
          () => 0,
        ),
      { timeout: 60_000 },
    )
    .toBe(200)
  return url
}

const post = async (url: string, path: string, body: object) => {
  const response = await fetch(url + path, { method: 'POST', body: JSON.stringify(body) })
  const answer = (await response.json()) as { error?: { message: string; type: string } }
  return `${response.status} ${answer.error?.type ?? 'ok'} ${answer.error?.message ?? ''}`.trim()
}

describe.each([
  ['the stand-in', [process.execPath, fakeEngine, '--as', 'llama-server'], true],
  [real, [real, '-m', file('tiny-chat-random.gguf'), '--no-ui', '-t', '1', '-tb', '1'], isThere],
] as const)('%s', (_name, program, isInstalled) => {
  test.skipIf(!isInstalled)('saves and restores the slot that requests name, and refuses the rest', async () => {
    const folder = temporary()
    const url = await start([...program], ['--slot-save-path', folder])
    const routes = slotRoutesAt({ origin: url }, [])
    expect(await routes.probe()).toEqual({ count: 2, build: expect.any(String) })
    const chat = { messages: [{ role: 'user', content: 'one two three four five six' }], max_tokens: 4, temperature: 0 }
    const ask = async (slot: number) => {
      const body = JSON.stringify({ ...chat, id_slot: slot })
      const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', body })
      const { usage } = (await response.json()) as {
        usage: { prompt_tokens: number; prompt_tokens_details: { cached_tokens: number } }
      }
      return usage.prompt_tokens - usage.prompt_tokens_details.cached_tokens
    }
    expect(await ask(1)).toBeGreaterThan(5)
    const [empty, tokens] = await routes.tokens(1_000)
    expect(tokens).toBeGreaterThan(5)
    expect(empty).toBeUndefined()
    expect(await routes.save(1, 'one.part', 1_000)).toBe(tokens)
    expect(readdirSync(folder)).toEqual(['one.part'])
    expect(await routes.restore(0, 'one.part', 1_000)).toBe(tokens)
    expect(await ask(0)).toBe(1)

    const noFile =
      '400 invalid_request_error Unable to restore slot: No available space in KV cache or invalid slot save file'
    const rows: [path: string, body: object, answer: string][] = [
      ['/slots/0?action=restore', { filename: 'none.part' }, noFile],
      ['/slots/0?action=restore', { filename: '../one.part' }, '400 invalid_request_error Invalid filename'],
      ['/slots/0?action=save', { filename: 'a/b' }, '400 invalid_request_error Invalid filename'],
      ['/slots/x?action=save', { filename: 'a' }, '400 invalid_request_error Invalid slot ID'],
      ['/slots/0?action=none', {}, '400 invalid_request_error Invalid action'],
      ['/slots/0?action=save', {}, "500 server_error [json.exception.out_of_range.403] key 'filename' not found"],
      ['/slots/3?action=erase', {}, '200 ok'],
    ]
    for (const [path, body, answer] of rows) expect(await post(url, path, body), path).toBe(answer)
    await expect(routes.restore(0, 'none.part', 1_000)).rejects.toThrow('Unable to restore slot')
  })

  test.skipIf(!isInstalled)('restores what an adapter has computed, once its slot has that adapter', async () => {
    const folder = temporary()
    const loras = [1, 2].flatMap(seed => {
      const path = join(folder, `lora-${seed}.gguf`)
      writeFileSync(path, tinyLora(seed))
      return ['--lora', path]
    })
    const options = ['--slot-save-path', folder, ...loras, '--lora-init-without-apply']
    const messages = [{ role: 'user', content: 'one two three four five six' }]
    async function ask(url: string, lora: object[], slot = 1) {
      const body = JSON.stringify({ lora, id_slot: slot, messages, max_tokens: 8, temperature: 0 })
      const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', body })
      const { usage, choices } = (await response.json()) as {
        usage: { prompt_tokens: number; prompt_tokens_details: { cached_tokens: number } }
        choices: { message: { content: string } }[]
      }
      const computed = usage.prompt_tokens - usage.prompt_tokens_details.cached_tokens
      return { computed, text: choices[0]!.message.content }
    }
    const [none, first] = [0, 1].map(scale => [{ id: 0, scale }])
    const before = await start([...program], options)
    const routes = slotRoutesAt({ origin: before }, [])
    const texts = { none: (await ask(before, none!, 0)).text, first: (await ask(before, first!)).text }
    expect(texts.first).not.toBe(texts.none)
    await routes.save(0, 'none.part', 1_000)
    await routes.save(1, 'first.part', 1_000)

    const after = await start([...program], options)
    const again = slotRoutesAt({ origin: after }, [])
    // A slot that has other adapters forgets what was restored.
    await again.restore(0, 'first.part', 1_000)
    expect((await ask(after, first!, 0)).computed).toBeGreaterThan(5)
    for (const [lora, name, text] of [
      [first, 'first.part', texts.first],
      [none, 'none.part', texts.none],
      [first, 'first.part', texts.first],
    ] as const) {
      await again.setAdapters(1, `"lora":${JSON.stringify(lora)}`, 1_000)
      await again.restore(1, name, 1_000)
      expect(await ask(after, lora!)).toEqual({ computed: 1, text })
    }
  })

  test.skipIf(!isInstalled)('restores where tokens are guessed from the text', async () => {
    const guesses = [
      '--spec-type',
      'ngram-simple',
      '--spec-ngram-simple-size-n',
      '3',
      '--spec-ngram-simple-size-m',
      '8',
    ]
    const url = await start([...program], ['--slot-save-path', temporary(), ...guesses])
    const routes = slotRoutesAt({ origin: url }, [])
    await expect(routes.probe()).rejects.toThrow('It guesses tokens with a draft model')
    expect(await routes.probe(true)).toEqual({ count: 2, build: expect.any(String) })
    const messages = [{ role: 'user', content: 'one two three four one two three four one two three' }]
    async function ask(slot: number) {
      const body = JSON.stringify({ id_slot: slot, messages, max_tokens: 24, temperature: 0 })
      const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', body })
      const { usage, choices } = (await response.json()) as {
        usage: { prompt_tokens: number; prompt_tokens_details: { cached_tokens: number } }
        choices: { message: { content: string } }[]
      }
      const { prompt_tokens, prompt_tokens_details } = usage
      return { computed: prompt_tokens - prompt_tokens_details.cached_tokens, text: choices[0]!.message.content }
    }
    const { text } = await ask(1)
    await routes.save(1, 'one.part', 1_000)
    await routes.restore(0, 'one.part', 1_000)
    expect(await ask(0)).toEqual({ computed: 1, text })
  })

  test.skipIf(!isInstalled)('refuses all of it without a folder', async () => {
    const url = await start([...program], [])
    expect(await post(url, '/slots/0?action=save', { filename: 'a' })).toBe(
      '501 not_supported_error This server does not support slots action. Start it with `--slot-save-path`',
    )
    await expect(slotRoutesAt({ origin: url }, []).probe()).rejects.toThrow('--slot-save-path')
  })
})
