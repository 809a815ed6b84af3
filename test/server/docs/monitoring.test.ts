import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { fakeModel, startApp, type TestApp } from '../../_app.ts'
import { cardLine, installNvidiaSmi } from '../../fixtures/nvidia-smi.ts'

const root = join(import.meta.dirname, '..', '..', '..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const built = existsSync(join(root, 'dist/assets/docs/grafana.json'))

interface Rule {
  alert: string
  expr: string
  labels: { severity: string }
  annotations: { summary: string; description: string }
}
interface Panel {
  title: string
  type: string
  targets?: { expr: string; legendFormat: string }[]
}
interface Variable {
  name: string
  query: string | { query: string }
}

const dashboard = JSON.parse(read('server/docs/grafana.json')) as {
  panels: Panel[]
  templating: { list: Variable[] }
}
const rules = (parse(read('server/docs/alerts.yaml')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  group => group.rules,
)
const guide = read('server/docs/guides/monitoring.md')

/** Label values by label, of each metric of a running server with a GPU. */
const metrics = new Map<string, Map<string, Set<string>>>()

/** What Prometheus adds to every metric, and its own metric. */
const added = ['job', 'instance']

function readMetrics(text: string): void {
  for (const [, name] of text.matchAll(/^# TYPE (\S+) /gm)) metrics.set(name!, new Map())
  for (const line of text.split('\n')) {
    const [, name, labels = ''] = /^([a-z_]\w*)(?:\{(.*)\})? \S+$/.exec(line) ?? []
    if (name === undefined) continue
    const values = metrics.get(name) ?? new Map<string, Set<string>>()
    metrics.set(name, values)
    for (const [, label, value] of labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g))
      values.set(label!, (values.get(label!) ?? new Set()).add(value!))
  }
}

let app: TestApp
const bin = mkdtempSync(join(tmpdir(), 'infer-monitoring-'))
const path = process.env.PATH

beforeAll(async () => {
  installNvidiaSmi(bin, { cards: `echo '${cardLine()}'` })
  process.env.PATH = `${bin}:${path}`
  // Nothing listens there: its addresses fail.
  const urls = ['http://127.0.0.1:1/v1', 'http://127.0.0.1:2/v1']
  const elsewhere = { id: 'elsewhere', engine: 'remote', urls } as const
  // There is no cluster, so nothing is known of it.
  const pools = { lab: { kind: 'slurm', card_memory: '80GiB' } }
  const peers = { box2: { url: 'http://127.0.0.1:9', api_key_env: 'INFER_TEST_NO_TOKEN' } }
  app = await startApp({ models: [fakeModel('fake', [], { devices: 1 }), elsewhere], pools, peers })
  const messages = [{ role: 'user', content: 'Hello' }]
  await (await app.fetch('/std/v1/chat/completions', { body: { model: 'elsewhere', messages } })).text()
  const body = { model: 'fake', stream: true, messages: [{ role: 'user', content: 'Hello there, how are you?' }] }
  await (await app.fetch('/std/v1/chat/completions', { body })).text()
  readMetrics(await (await app.fetch('/metrics', { token: null })).text())
  metrics.set('up', new Map())
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  process.env.PATH = path
  rmSync(bin, { recursive: true, force: true })
})

/** The unknown names in a PromQL expression. */
function faultsOf(expr: string): string[] {
  const faults: string[] = []
  const used = new Set(added)
  const grouping = /\b(?:by|without|on|ignoring)\s*\(([^)]*)\)/g
  const text = expr.replace(grouping, '').replace(/\[[^\]]*\]/g, '')
  for (const [, name, call, matchers = ''] of text.matchAll(/\b([a-z_]\w*)\s*(\()?(\{[^}]*\})?/g)) {
    if (call !== undefined) continue
    const labels = metrics.get(name!)
    if (!labels) {
      faults.push(`there is no metric ${name}`)
      continue
    }
    for (const label of labels.keys()) used.add(label)
    for (const [, label, operator, value] of matchers.matchAll(/(\w+)\s*(=~|!=|!~|=)\s*"([^"]*)"/g)) {
      if (added.includes(label!)) continue
      if (!labels.has(label!)) faults.push(`${name} has no label ${label}`)
      // The names of models and the statuses of answers depend on the server.
      else if (!['model', 'status'].includes(label!))
        for (const one of operator === '=~' ? value!.split('|') : [value!])
          if (!labels.get(label!)!.has(one)) faults.push(`${name} has no ${label}="${one}"`)
    }
  }
  for (const [, names] of expr.matchAll(grouping))
    for (const label of names!.split(',').map(name => name.trim()))
      if (!used.has(label)) faults.push(`no metric of it has the label ${label}`)
  return faults
}

describe('a name that the server does not have is reported', () => {
  test.each([
    ['infer_no_such_metric > 0', 'there is no metric infer_no_such_metric'],
    ['sum(rate(infer_tokens_total{sort="input"}[5m]))', 'infer_tokens_total has no label sort'],
    ['infer_device_memory_bytes{kind="spare"}', 'infer_device_memory_bytes has no kind="spare"'],
    ['sum by (route) (infer_queue_depth)', 'no metric of it has the label route'],
  ])('%s', (expr, fault) => expect(faultsOf(expr)).toEqual([fault]))

  test('and a name that it has is not', () => {
    expect(faultsOf('sum by (model, le) (rate(infer_queue_wait_seconds_bucket{model=~"$model"}[5m]))')).toEqual([])
  })
})

describe('the dashboard', () => {
  const targets = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(target => ({ title, ...target })))

  test('has panels for requests, models, devices, jobs and the process', () => {
    const rows = dashboard.panels.filter(({ type }) => type === 'row').map(({ title }) => title)
    expect(rows).toEqual(['Now', 'Requests', 'Models', 'Devices', 'Jobs and database', 'Server process'])
    expect(targets.length).toBeGreaterThan(30)
  })

  test('uses metrics, labels and values of a running server', () => {
    expect(targets.flatMap(({ title, expr }) => faultsOf(expr).map(fault => `${title}: ${fault}`))).toEqual([])
  })

  test('names series by labels that are kept by the aggregation', () => {
    const wrong = targets.flatMap(({ title, expr, legendFormat }) =>
      [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)]
        .map(([, label]) => label!)
        .filter(label => /\bsum\b/.test(expr) && !new RegExp(`by \\([^)]*\\b${label}\\b`).test(expr))
        .map(label => `${title}: ${label}`),
    )
    expect(wrong).toEqual([])
  })

  test('has a variable for every name with a dollar sign', () => {
    const known = new Set([...dashboard.templating.list.map(({ name }) => name), '__rate_interval', '__all'])
    const named = [...JSON.stringify(dashboard).matchAll(/\$\{?(\w+)\}?/g)].map(([, name]) => name!)
    expect([...new Set(named)].filter(name => !known.has(name))).toEqual([])
    for (const { query } of dashboard.templating.list) {
      const [, selector, label] =
        /^label_values\((.*), (\w+)\)$/.exec(typeof query === 'string' ? query : query.query) ?? []
      if (selector === undefined) continue
      expect(faultsOf(selector)).toEqual([])
      const metric = /^\w+/.exec(selector)![0]
      expect([...added, ...metrics.get(metric)!.keys()]).toContain(label)
    }
  })
})

describe('the alert rules', () => {
  test('use metrics, labels and values of a running server', () => {
    expect(rules.flatMap(({ alert, expr }) => faultsOf(expr).map(fault => `${alert}: ${fault}`))).toEqual([])
  })

  test('say what happened and what to do, with labels that the expression keeps', () => {
    for (const { alert, expr, labels, annotations } of rules) {
      expect([alert, labels.severity]).toEqual([alert, expect.stringMatching(/^(critical|warning|info)$/)])
      expect(annotations.description.length, alert).toBeGreaterThan(40)
      for (const [, label] of Object.values(annotations)
        .join(' ')
        .matchAll(/\$labels\.(\w+)/g))
        if (/\bsum by\b/.test(expr)) expect([alert, expr]).toEqual([alert, expect.stringMatching(`\\b${label}\\b`)])
    }
  })
})

describe('the guide', () => {
  const rows = [...guide.matchAll(/^\| `(infer_\w+)` \|([^|]*)\|/gm)].map(([, name, labels]) => ({
    name: name!,
    labels: [...labels!.matchAll(/`(\w+)`/g)].map(([, label]) => label!),
  }))

  test('lists every metric of infer with its labels, and no other', () => {
    const families = [...metrics.keys()].filter(name => name.startsWith('infer_') && !/_(bucket|sum|count)$/.test(name))
    const labelsOf = (name: string) => {
      const labels = metrics.get(name)!.size > 0 ? metrics.get(name)! : metrics.get(`${name}_count`)
      return [...(labels?.keys() ?? [])].filter(label => label !== 'le').toSorted((a, b) => a.localeCompare(b))
    }
    expect(
      Object.fromEntries(rows.map(({ name, labels }) => [name, labels.toSorted((a, b) => a.localeCompare(b))])),
    ).toEqual(Object.fromEntries(families.map(name => [name, labelsOf(name)])))
  })

  test('names only existing metrics', () => {
    const named = [...guide.matchAll(/\b(?:infer|process|nodejs)_[a-z][a-z0-9_]*/g)].map(([name]) => name)
    expect([...new Set(named)].filter(name => !metrics.has(name))).toEqual([])
  })

  test('lists every alert', () => {
    const named = [...guide.matchAll(/^\| `(Infer\w+)` \| (\w+) \|/gm)].map(([, alert, severity]) => [alert, severity])
    expect(named).toEqual(rules.map(({ alert, labels }) => [alert, labels.severity]))
  })
})

describe.skipIf(!built)('the server serves both files', () => {
  test.each([
    ['/docs/grafana.json', 'application/json', 'server/docs/grafana.json'],
    ['/docs/alerts.yaml', 'application/yaml', 'server/docs/alerts.yaml'],
  ])('%s needs no token, and pages of other sites are refused', async (address, type, file) => {
    const response = await app.fetch(address, { token: null })
    expect([response.status, response.headers.get('content-type')]).toEqual([200, type])
    expect(await response.text()).toBe(read(file))
    const headers = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors' }
    expect((await app.fetch(address, { token: null, headers })).status).toBe(403)
  })
})
