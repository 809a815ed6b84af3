import type { Command } from '@commander-js/extra-typings'
import { type Api, type Client, dataOf, memberOf, openClient } from '../client/client.ts'
import { type Fact, factLines, idText } from '../jobs/draw.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { readCount, withCommon, withExamples } from '../terminal/options.ts'
import { lengthText, timeText } from '../terminal/quantities-text.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'

type Approval = Api['Approval']

/** `infer approval …`: questions that executions of workflows wait for. */
export function define(command: Command, terminal: Terminal): void {
  defineList(command, terminal)
  defineShow(command, terminal)
  defineAnswer(command, terminal, 'approve')
  defineAnswer(command, terminal, 'reject')
  withExamples(command, [
    ['infer approval list', 'what is asked'],
    ['infer approval show 7QK2M9XD', 'by the end of its id'],
    ['infer approval approve 7QK2M9XD --comment "Looks good"', 'let the workflow go on'],
  ])
}

/** `infer approval list`: lists open approvals. */
function defineList(command: Command, terminal: Terminal): void {
  const list = withCommon(command.command('list'))
    .summary('list open approvals, newest first')
    .description(
      'Lists the questions that nobody has answered yet. On a narrow terminal shows the end of each id, which every command accepts.',
    )
    .option('--execution <id>', 'only approvals of this execution')
    .option('--workflow <id>', 'only approvals of this workflow')
    .option('--limit <count>', 'maximum number, 1 to 100', readCount(1, 100), 20)
    .action(async ({ execution: execution_id, workflow: workflow_id, limit, json, dataDir }) => {
      const { api } = openClient(dataDir)
      const query = { execution_id, workflow_id, limit }
      const page = await dataOf(api.GET('/api/approvals', { params: { query } }))
      if (json) return terminal.json(page)
      if (page.approvals.length === 0) return terminal.remark('Nothing waits for an answer.')
      const width = terminal.isTerminal ? terminal.stdout.columns || 80 : 0
      const now = Date.now() / 1000
      terminal.table(
        ['id', 'workflow', 'node', 'waits', 'ends in', 'title'],
        page.approvals.map(one => [
          idText(one.id, width),
          printable(one.workflow_name),
          nodeText(one),
          lengthText(now - one.created_at),
          one.timeout_at === null ? '-' : lengthText(Math.max(0, one.timeout_at - now)),
          printable(one.title),
        ]),
      )
      if (page.has_more && limit < 100)
        terminal.remark(`There are more. Show them: --limit ${Math.min(100, limit * 5)}`)
    })
  withExamples(list, [
    ['infer approval list', 'the newest twenty'],
    ['infer approval list --execution exec_…', 'those of one execution'],
  ])
}

/** `infer approval show <id>`: shows what is asked. */
function defineShow(command: Command, terminal: Terminal): void {
  const show = withCommon(command.command('show'))
    .summary('show what is asked')
    .description('Shows one open approval: the question, its form, who may answer, and the address of its page.')
    .argument('<id>', 'the approval, or the end of its id')
    .action(async (text, { dataDir, json }) => {
      const approval = await findApproval(openClient(dataDir), text)
      if (json) return terminal.json(approval)
      const { paint } = terminal
      const asked = approval.text === null ? [] : ['', ...approval.text.split('\n').map(printable)]
      terminal.print([...factLines(factsOf(approval), paint), ...asked, ...formLines(approval)].join('\n'))
    })
  withExamples(show, [
    ['infer approval show 7QK2M9XD', 'by the end of its id'],
    ['infer approval show job_… --json', 'for a program'],
  ])
}

/** `infer approval approve|reject <id>`: answers an approval. */
function defineAnswer(command: Command, terminal: Terminal, verb: 'approve' | 'reject'): void {
  const approved = verb === 'approve'
  const answer = withCommon(command.command(verb))
    .summary(approved ? 'approve, or fill in the form' : 'reject')
    .description(
      approved
        ? 'Approves, so that the workflow goes on. With a form give its values as JSON.'
        : 'Rejects. The workflow goes on with that: its conditions say how.',
    )
    .argument('<id>', 'the approval, or the end of its id')
    .option('--comment <text>', 'why')
  if (approved) answer.option('--answer <json>', 'the values of the form: {"amount": 7}')
  answer.action(async (text, options) => {
    const { dataDir, json, comment } = options
    const values = (options as { answer?: string }).answer
    const client = openClient(dataDir)
    const { execution_id: id, node_id: node, item, title } = await findApproval(client, text)
    const body = {
      approved,
      ...(item === null ? {} : { item }),
      ...(comment === undefined ? {} : { comment }),
      ...(values ? { answer: readJson(values) } : {}),
    }
    const params = { path: { id, node } }
    const resolved = await dataOf(
      client.api.POST('/api/workflow-executions/{id}/nodes/{node}/resolve', { params, body }),
    )
    terminal.result(json, resolved, `${approved ? 'Approved' : 'Rejected'}: ${printable(title)}`)
  })
  withExamples(
    answer,
    approved
      ? [
          ['infer approval approve 7QK2M9XD', 'by the end of its id'],
          [`infer approval approve job_… --answer '{"amount": 7}'`, 'with a form'],
        ]
      : [['infer approval reject 7QK2M9XD --comment "Too long"', 'with a reason']],
  )
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw usageFailure(`--answer is no JSON. Write it as --answer '{"name": "value"}'.`)
  }
}

/** Finds an open approval by its id, or the end of its id, which must be unique among the newest. */
async function findApproval({ api }: Client, text: string): Promise<Approval> {
  if (/^job_\w{26}$/.test(text))
    return memberOf(api.GET('/api/approvals/{id}', { params: { path: { id: text } } }), 'approval')
  const end = text.toUpperCase()
  const approvals = await memberOf(api.GET('/api/approvals', { params: { query: { limit: 100 } } }), 'approvals')
  const found = approvals.filter(({ id }) => end.length >= 4 && id.endsWith(end))
  if (found.length > 1)
    throw usageFailure(`'${printable(text)}' matches ${found.map(({ id }) => id).join(' and ')}. Give more of the id.`)
  if (found[0]) return found[0]
  throw usageFailure(`No open approval has the id '${printable(text)}'. See: infer approval list`)
}

/** The node that asks, and the item of its list: `review[3]`. */
const nodeText = ({ node_id: node, item }: Approval): string =>
  item === null ? printable(node) : `${printable(node)}[${item}]`

const factsOf = (approval: Approval): Fact[] => [
  ['asked', printable(approval.title)],
  ['id', approval.id],
  ['workflow', printable(approval.workflow_name)],
  ['execution', approval.execution_id],
  ['node', nodeText(approval)],
  ['since', timeText(approval.created_at * 1000)],
  ['until', approval.timeout_at === null ? undefined : timeText(approval.timeout_at * 1000)],
  ['approvers', approval.approvers?.map(printable).join(', ')],
  ['images', approval.images.length === 0 ? undefined : approval.images.join(' ')],
  ['page', approval.url ?? undefined],
]

/** One line per field of the form. */
function formLines({ form }: Approval): string[] {
  if (form === null) return []
  const required = new Set(form.required)
  return [
    '',
    'form',
    ...Object.entries(form.properties).map(([name, { type = 'string', enum: values, description }]) => {
      const kind = values ? values.map(String).join(' | ') : type
      const help = description === undefined ? '' : `  ${description}`
      return `  ${printable(`${name}${required.has(name) ? ' (required)' : ''}: ${kind}${help}`)}`
    }),
  ]
}
