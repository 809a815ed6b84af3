import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { TestApp } from '../_app.ts'
import { compiler, type Description, type Operation } from './_reference.ts'

export const examplesPath = join(import.meta.dirname, '..', '..', 'server', 'docs', 'answer-examples.json')

export interface Sent {
  path?: Record<string, string>
  query?: Record<string, string>
  /** Replaces the example of the reference. */
  body?: unknown
  headers?: Record<string, string>
  token?: string | null
  /** The expected status; any success when absent. */
  status?: number
}

/** Sends requests to a server and checks that its answers match the reference. */
export function openExampleRun(app: TestApp, api: Description) {
  const compile = compiler(api, { close: true })
  const answers = new Map<string, unknown>()
  const sent = new Set<string>()

  function operationOf(name: string): { method: string; path: string; operation: Operation } {
    const [method = '', path = ''] = name.split(' ')
    const operation = api.paths[path]?.[method.toLowerCase()]
    if (!operation) throw new Error(`The reference has no ${name}`)
    return { method, path, operation }
  }

  async function ask(name: string, { path: params = {}, query, body, headers, token }: Sent): Promise<Response> {
    const { method, path, operation } = operationOf(name)
    sent.add(name)
    const filled = path.replace(/\{(\w+)\}/g, (_, param: string) => {
      if (params[param] === undefined) throw new Error(`${name} needs {${param}}`)
      return params[param]
    })
    const example = operation.requestBody?.content['application/json']?.example
    const search = query ? `?${new URLSearchParams(query).toString()}` : ''
    return app.fetch(filled + search, {
      method,
      body: body ?? example,
      ...(headers ? { headers } : {}),
      ...(token === undefined ? {} : { token }),
    })
  }

  /** The schema of an answer of this media type; fails where the reference has none. */
  function schemaOf(name: string, status: number, type: string) {
    const { operation } = operationOf(name)
    const content = operation.responses[status]?.content ?? {}
    const schema = (content[type] ?? content[`${type.split('/')[0]}/*`] ?? content['*/*'])?.schema
    expect(schema, `${name}: the reference has no answer ${status} of ${type}`).toBeDefined()
    return schema!
  }

  const typeOf = (response: Response): string => (response.headers.get('content-type') ?? '').split(';')[0]!

  function check(name: string, status: number, type: string, value: unknown): void {
    const validate = compile(schemaOf(name, status, type))
    expect([name, validate(value), validate.errors], JSON.stringify(value)).toEqual([name, true, null])
  }

  return {
    /** Sends the example request; resolves with the answer, which has the documented shape. */
    async send<T = Record<string, never>>(name: string, how: Sent = {}): Promise<T> {
      const response = await ask(name, how)
      const text = await response.text()
      expect([name, how.status ?? response.ok], text).toEqual([name, how.status ? response.status : true])
      if (response.status === 204) return undefined as T
      if (typeOf(response) !== 'application/json') {
        schemaOf(name, response.status, typeOf(response))
        return text as T
      }
      const value = JSON.parse(text) as T
      check(name, response.status, 'application/json', value)
      const { operationId } = operationOf(name).operation
      if (response.ok && !answers.has(operationId)) answers.set(operationId, value)
      return value
    },

    /** Reads an event stream until its end, or until `last` accepts an event. Each has the documented shape. */
    async stream(name: string, how: Sent = {}, last?: (event: unknown) => boolean): Promise<unknown[]> {
      const response = await ask(name, how)
      expect([name, response.status, typeOf(response)]).toEqual([name, 200, 'text/event-stream'])
      const events: unknown[] = []
      let rest = ''
      for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
        const lines = (rest + piece).split('\n')
        rest = lines.pop()!
        for (const line of lines) {
          if (!line.startsWith('data: ') || line === 'data: [DONE]') continue
          const event = JSON.parse(line.slice(6)) as unknown
          check(name, 200, 'text/event-stream', event)
          events.push(event)
          if (last?.(event)) return events
        }
      }
      expect(events.length, name).toBeGreaterThan(0)
      return events
    },

    /** The answers by operation id. */
    answers,
    /** Operations that were sent, such as `GET /api/me`. */
    sent,
  }
}

/** The examples of the reference, as stored in the repository. */
export const storedExamples = (): Record<string, unknown> =>
  JSON.parse(readFileSync(examplesPath, 'utf8')) as Record<string, unknown>

/** The names and types of a value and of its members: what two answers of one operation have in common. */
export function formOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.length > 0 ? [formOf(value[0])] : []
  if (value === null || typeof value !== 'object') return value === null ? null : typeof value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, formOf(one)]))
}

/** An answer as an example: shortened, and without details of the machine on which it was made. */
export function exampleOf(value: unknown, replacements: readonly (readonly [string, string])[], key = ''): unknown {
  if (typeof value === 'string') {
    if (value.startsWith('sk-infer-')) return 'sk-infer-…'
    if (key === 'signing_secret') return 'whsec_…'
    if (key === 'token') return `${value.slice(0, 12)}…`
    const text = replacements.reduce((before, [from, to]) => before.replaceAll(from, to), value)
    return text.length > 300 ? `${text.slice(0, 120)}…` : text
  }
  if (value === null || typeof value !== 'object') return value
  if (key === 'input_schema') return { type: 'object' }
  if (Array.isArray(value)) {
    const most = typeof value[0] === 'number' ? 4 : typeof value[0] === 'object' ? 1 : 8
    return value.slice(0, most).map(one => exampleOf(one, replacements))
  }
  const entries = Object.entries(value)
  const shown = ['input_schemas', 'slugs', 'features'].includes(key) ? entries.slice(0, 1) : entries
  return Object.fromEntries(
    shown.map(([name, one]) => [name, exampleOf(one, replacements, key === 'input_schemas' ? 'input_schema' : name)]),
  )
}
