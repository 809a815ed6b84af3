import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { engineVariables, environmentVariables } from '../../core/environment-variables.ts'

const table = 'core/environment-variables.ts'
const sources = globSync('{bin,cli,core,gpu,server}/**/*.{ts,js,cjs}').filter(path => path !== table)
const used = new Set(sources.flatMap(path => readFileSync(path, 'utf8').match(/\bINFER_[A-Z_]*[A-Z]\b/g) ?? []))
const documented: Readonly<Record<string, { meaning: string; default: string; example: string }>> = {
  ...environmentVariables,
  ...engineVariables,
}

test('every environment variable in the sources is documented', () => {
  expect(used.size).toBeGreaterThan(5)
  expect([...used].filter(name => !(name in documented))).toEqual([])
})

test('every documented environment variable is used', () => {
  const own = Object.keys(documented).filter(name => name.startsWith('INFER_'))
  expect(own.filter(name => !used.has(name))).toEqual([])
})

test.each(Object.entries(documented))(
  '%s has meaning, default and example',
  (_, { meaning, default: value, example }) => {
    expect(meaning).toMatch(/^[a-z].*[^.]$/)
    for (const text of [value, example]) expect(text).toMatch(/\S/)
  },
)
