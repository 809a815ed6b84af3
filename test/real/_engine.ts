import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, delimiter, join } from 'node:path'
import OpenAI from 'openai'
import { afterAll, beforeAll, expect, vi } from 'vitest'
import { startApp, type TestApp } from '../_app.ts'

// What the tests of this folder share. Functions that register hooks are called in the body of a `describe`. What they
// return exists once the hooks have run, so that a group that is skipped leaves nothing behind.

export const minutes = 60_000

/** A body of JSON. The assertions check its form. */
// oxlint-disable-next-line no-explicit-any
export type Json = any

/** Runs a program to its end. Returns its output with one character per byte. */
export function run(program: string, args: string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'latin1', maxBuffer: 1 << 28 })
  expect(status, stderr).toBe(0)
  return stdout
}

/** The folders that a Python program reads: its environment and the installation below it. */
export const pythonPrefixes = (python: string): string[] => [
  ...new Set(run(python, ['-c', 'import sys; print(sys.prefix, sys.base_prefix, sep="\\n")']).trim().split('\n')),
]

/** The folder of infer's Python worker, and the environment in which a Python finds it. */
export const worker = join(import.meta.dirname, '..', '..', 'gpu', 'worker')
export const workerEnvironment = { PYTHONPATH: worker, PYTHONDONTWRITEBYTECODE: '1' }

/** A command that serves a model by infer's Python worker on a socket. */
export function workerCommand(python: string, model: string, tasks: string[], socket: string, more: string[] = []) {
  const options = { '--model': model, '--id': basename(model), '--threads': '2', '--socket': socket }
  const named = [...Object.entries(options), ...tasks.map(task => ['--task', task])]
  return [python, '-m', 'infer_worker', ...named.flat(), ...more]
}

/** Returns the path of a folder that exists from the first call until the tests of the group have ended. */
export function temporaryFolder(): () => string {
  let folder: string | undefined
  afterAll(() => folder && rmSync(folder, { recursive: true, force: true }))
  return () => (folder ??= mkdtempSync(join(tmpdir(), 'infer-real-')))
}

/** Makes models by a script of this folder, those named or all. `expected` is what the script computed with them. */
export function makeModels(python: string, script: string, names: string[] = []): { folder: string; expected: Json } {
  const folder = temporaryFolder()
  beforeAll(() => void run(python, [join(import.meta.dirname, script), folder(), ...names]), 5 * minutes)
  return {
    get folder() {
      return folder()
    },
    get expected() {
      return JSON.parse(readFileSync(join(folder(), 'expected.json'), 'utf8'))
    },
  }
}

type Config = Parameters<typeof startApp>[0]

export interface Infer {
  readonly app: TestApp
  readonly openai: OpenAI
  readonly post: (route: string, body: object) => Promise<{ status: number; body: Json }>
  /** The model with its status and its engines. */
  readonly statusOf: (model: string) => Promise<Json>
  /** Loads a model for the tests of a group and unloads it after them, because there is memory for one at a time. */
  readonly loaded: (model: string, timeout: number) => void
}

/** Starts infer for the tests of the group, with a folder of engine programs first in the PATH. */
export function startInfer(programs: string, configure: () => Config | Promise<Config>): Infer {
  let app: TestApp
  let openai: OpenAI
  const path = process.env.PATH
  beforeAll(async () => {
    if (programs) process.env.PATH = `${programs}${delimiter}${path}`
    app = await startApp(await configure())
    openai = new OpenAI({ baseURL: `${app.url}/std/v1`, apiKey: app.secret, maxRetries: 0 })
  }, minutes)
  afterAll(async () => {
    await app?.[Symbol.asyncDispose]()
    process.env.PATH = path
  })
  const statusOf = async (model: string): Promise<Json> => (await app.fetch(`/api/models/${model}`)).json()
  return {
    get app() {
      return app
    },
    get openai() {
      return openai
    },
    async post(route, body) {
      const response = await app.fetch(route, { body })
      return { status: response.status, body: await response.json() }
    },
    statusOf,
    loaded(model, timeout) {
      beforeAll(async () => {
        await app.fetch(`/api/models/${model}/load`, { method: 'POST' })
        const ended = { timeout, interval: 500 }
        await vi.waitFor(async () => expect((await statusOf(model)).status.status).not.toBe('loading'), ended)
        expect((await statusOf(model)).status).toMatchObject({ reason: null, workers: { ready: 1 } })
      }, timeout)
      afterAll(async () => {
        await app.fetch(`/api/models/${model}/unload`, { method: 'POST' })
        const unloaded = { timeout: minutes, interval: 100 }
        await vi.waitFor(async () => expect((await statusOf(model)).engines).toEqual([]), unloaded)
      }, minutes)
    },
  }
}
