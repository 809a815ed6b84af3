import { expect, test } from 'vitest'
import { configurationMarkdown } from '../../../bin/guides/configuration.ts'
import { pageHtml } from '../../../bin/guides/html.ts'
import { pageOf } from '../../../bin/guides/pages.ts'
import { engineVariables, environmentVariables } from '../../../core/environment-variables.ts'
import { configKeys } from '../../../core/models/config-keys.ts'

const markdown = configurationMarkdown()

test('the configuration page has every key and every environment variable', () => {
  for (const { key } of configKeys()) expect(markdown).toContain(`\n### \`${key}\`\n`)
  for (const name of Object.keys({ ...environmentVariables, ...engineVariables }))
    expect(markdown).toContain(`\n| \`${name}\` | `)
})

test('the links of the page lead to its headings, and each heading has a different name', () => {
  const html = pageHtml(pageOf('configuration', markdown), [])
  const anchors = [...html.matchAll(/<h\d id="([^"]+)"/g)].map(([, id]) => id!)
  expect(new Set(anchors).size).toBe(anchors.length)
  const links = [...html.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id!)
  expect(links.length).toBeGreaterThan(2 * configKeys().length)
  expect(links.filter(id => !anchors.includes(id))).toEqual([])
})

test('no cell of its tables is split', () => {
  for (const row of markdown.split('\n').filter(line => line.startsWith('| '))) expect(row.split('|')).toHaveLength(6)
})
