import { expect, test } from 'vitest'
import { configurationMarkdown } from '../../../bin/guides/configuration.ts'
import { engineVariables, environmentVariables } from '../../../core/environment-variables.ts'
import { configKeys } from '../../../core/models/config-keys.ts'

const markdown = configurationMarkdown()

test('the page of the configuration has every key and every environment variable', () => {
  for (const { key } of configKeys()) expect(markdown).toContain(`\n### \`${key}\`\n`)
  for (const name of Object.keys({ ...environmentVariables, ...engineVariables }))
    expect(markdown).toContain(`\n| \`${name}\` | `)
})

test('it is a page that the renderer of the guides takes', () => {
  expect(markdown).toMatch(/^# Configuration\n/)
  // Outside of code there is nothing that markdown takes for HTML, and no cell of a table is cut in two.
  const text = markdown.replaceAll(/```[^]*?```|`[^`\n]*`/g, '')
  expect(text.match(/<\w+/g)).toBeNull()
  for (const row of markdown.split('\n').filter(line => line.startsWith('| '))) expect(row.split('|')).toHaveLength(6)
})
