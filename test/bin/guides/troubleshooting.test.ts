import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { exits } from '../../../cli/help/manual.ts'
import { failures } from '../../../core/failure.ts'
import { waitingReasons } from '../../../core/jobs/job-progress.ts'

const guide = readFileSync('server/docs/guides/troubleshooting.md', 'utf8')
const rows = guide.split('\n').filter(line => line.startsWith('| '))

test.each(Object.entries(failures))(
  'the troubleshooting guide has a row for %s with its status',
  (code, { status }) => {
    expect(rows.filter(row => row.includes(`\`${code}\``) && row.includes(String(status)))).not.toEqual([])
  },
)

test('it lists no unknown error code', () => {
  const [, codes = ''] = /## Other error codes\n([^]*?)\n## /.exec(guide) ?? []
  const listed = [...codes.matchAll(/^\|([^|]*)\|/gm)].flatMap(([, cell]) => cell!.match(/`\w+`/g) ?? [])
  expect(listed.length).toBeGreaterThan(20)
  expect(listed.map(code => code.slice(1, -1)).filter(code => !(code in failures))).toEqual([])
})

test('it lists every exit code, and every reason why a job waits', () => {
  for (const code of Object.keys(exits)) expect(guide).toContain(`\n| ${code} | `)
  for (const reason of waitingReasons) expect(guide).toContain(`\n| \`${reason}\` | `)
})
