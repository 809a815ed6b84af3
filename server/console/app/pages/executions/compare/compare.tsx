import { ArrowLeftRight, ChevronRight } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { api, at, type Schema, useAnswer, useSession } from '../../../api/client.ts'
import { useLiveRefresh } from '../../../api/live.ts'
import { Badge, JobStatus } from '../../../components/badge.tsx'
import { ButtonLink, TextLink } from '../../../components/button.tsx'
import { ValueDifferenceList } from '../../../components/difference/value-difference-list.tsx'
import { Checkbox } from '../../../components/fields.tsx'
import { knownDuration } from '../../../components/format.ts'
import { BackLink, PageHeading, Queried, Section, useBeginning } from '../../../components/page.tsx'
import { type Column, Table } from '../../../components/table.tsx'
import { Time } from '../../../components/time.tsx'
import { useAddress } from '../../../components/use-address.ts'
import { comparisonText as text } from '../../../text/comparison.ts'
import { executionsText } from '../../../text/executions.ts'
import { type ComparedNode, compareHref, differentParts, isDifferent, knownCost, versionsHref } from './comparison.ts'
import { NodeDifference } from './node-difference.tsx'

type Summary = Schema<'ExecutionSummary'>

/** Two executions side by side, and what differs between their nodes. Live until both have ended. */
export default function ComparePage({ first, second }: { first: string; second: string }) {
  useBeginning()
  const [params, change] = useAddress()
  const key = ['executions', 'compare', first, second]
  const query = useAnswer(key, async () => {
    const read = async (id: string) =>
      (await api.GET('/api/workflow-executions/{id}', at({ id }, { include: 'none' }))).data!.execution
    const [one, other, { data }] = await Promise.all([
      read(first),
      read(second),
      api.GET('/api/workflow-executions/{id}/compare', {
        params: { path: { id: first }, query: { with: second } },
      }),
    ])
    return { data: { one, other, nodes: data!.nodes } }
  })
  useLiveRefresh(['workflow_execution.'], key, {
    concerns: ({ data }) => [first, second].includes(String(data.data?.execution_id ?? data.execution_id)),
  })
  const only = params.get('only') !== null
  return (
    <>
      <BackLink page="executions" />
      <PageHeading
        title={text.title}
        about={text.about}
        actions={<ButtonLink href={compareHref(second, first)} icon={ArrowLeftRight} label={text.swap} />}
      />
      <Queried query={query} lines={8} gone={text.gone}>
        {({ one, other, nodes }) => (
          <>
            <Executions one={one} other={other} />
            <Section title={text.parameters}>
              <ValueDifferenceList before={one.input_params} after={other.input_params} same={text.sameParameters} />
            </Section>
            <Section
              title={text.nodes}
              actions={
                <Checkbox
                  label={text.onlyDifferent}
                  checked={only}
                  change={checked => change({ only: checked ? 'different' : undefined })}
                />
              }
            >
              <Nodes ids={[first, second]} nodes={only ? nodes.filter(isDifferent) : nodes} />
              {!nodes.some(isDifferent) && <p className="mt-2">{text.same}</p>}
            </Section>
          </>
        )}
      </Queried>
    </>
  )
}

interface Row {
  name: string
  /** What is shown of each, and what it is compared by. */
  first: ReactNode
  second: ReactNode
  differs: boolean
}

const rowColumns: readonly Column<Row>[] = [
  {
    name: text.of,
    show: ({ name, differs }) => (
      <span className="inline-flex flex-wrap gap-2">
        <span className="font-medium">{name}</span>
        {differs && <Badge kind="warning">{text.differs}</Badge>}
      </span>
    ),
  },
  { name: text.first, show: 'first' },
  { name: text.second, show: 'second' },
]

/** What the executions are and took. */
function Executions({ one, other }: { one: Summary; other: Summary }) {
  const { currency } = useSession().session
  const row = (
    name: keyof typeof text.columns,
    show: (execution: Summary) => ReactNode,
    by: (execution: Summary) => unknown = () => undefined,
  ): Row => ({
    name: text.columns[name],
    first: show(one),
    second: show(other),
    differs: by(one) !== by(other),
  })
  const duration = ({ duration_ms }: Summary) => knownDuration(duration_ms)
  const cost = (execution: Summary) => knownCost(execution.cost, currency)
  const tags = (execution: Summary) => execution.tags.join(', ')
  const rows = [
    row('id', ({ id }) => <TextLink href={`/executions/${id}`} className="font-mono text-xs break-all" label={id} />),
    row(
      'status',
      ({ status }) => <JobStatus status={status} />,
      ({ status }) => status,
    ),
    row(
      'workflow',
      ({ workflow_id: id, workflow_name: name }) => (id === null ? executionsText.unsaved : name),
      ({ workflow_id }) => workflow_id,
    ),
    ...(one.workflow_version === null && other.workflow_version === null
      ? []
      : [
          row(
            'version',
            ({ workflow_version: version }) => (version === null ? '–' : executionsText.version(version)),
            ({ workflow_version }) => workflow_version,
          ),
        ]),
    ...(tags(one) || tags(other) ? [row('tags', tags, tags)] : []),
    row('started', ({ started_at }) => (started_at === null ? '–' : <Time at={started_at} />)),
    row('duration', duration, duration),
    row('cost', cost, cost),
  ]
  const versions = versionsHref(one, other)
  return (
    <div className="mb-6">
      <Table label={text.title} columns={rowColumns} rows={rows} rowKey="name" />
      {versions && <TextLink href={versions} className="mt-2 inline-block underline" label={text.versions} />}
    </div>
  )
}

/** The nodes of both; the first whose values differ is open. */
function Nodes({ ids, nodes }: { ids: readonly [string, string]; nodes: readonly ComparedNode[] }) {
  const begin = nodes.find(isDifferent)?.node_id
  return (
    <ul className="border-line bg-surface divide-line divide-y rounded-lg border empty:hidden">
      {nodes.map(node => (
        <li key={node.node_id}>
          <Node ids={ids} node={node} isOpen={node.node_id === begin} />
        </li>
      ))}
    </ul>
  )
}

function Node({ ids, node, isOpen }: { ids: readonly [string, string]; node: ComparedNode; isOpen: boolean }) {
  const [open, setOpen] = useState(isOpen)
  const { node_id: id, first, second, unknown } = node
  const parts = differentParts(node)
  const differs = (part: (typeof parts)[number]) => parts.includes(part)
  return (
    <details className="group" open={open} onToggle={event => setOpen(event.currentTarget.open)}>
      <summary className="hover:bg-raised/50 flex list-none items-start gap-2 px-3 py-2 [&::-webkit-details-marker]:hidden">
        <ChevronRight aria-hidden className="mt-0.5 size-4 shrink-0 group-open:rotate-90" />
        <span className="flex min-w-0 flex-wrap items-center gap-x-3 gap-y-1">
          <span className="font-medium break-all">{id}</span>
          {!first && <Badge kind="warning">{text.onlySecond}</Badge>}
          {!second && <Badge kind="warning">{text.onlyFirst}</Badge>}
          {parts
            .filter(part => part !== 'time' && part !== 'cost')
            .map(part => (
              <Badge key={part} kind="warning">
                {text.parts[part]}
              </Badge>
            ))}
          {unknown.length > 0 && (
            <span className="text-muted text-xs">{text.long(unknown.map(part => text.parts[part]).join(', '))}</span>
          )}
          <Pair
            differs={differs('status')}
            first={first && <JobStatus status={first.status} />}
            second={second && <JobStatus status={second.status} />}
          />
          {differs('model') && <Pair differs first={first?.model_id} second={second?.model_id} />}
          <Pair
            differs={differs('time')}
            first={first && knownDuration(first.duration_ms)}
            second={second && knownDuration(second.duration_ms)}
          />
          {((first?.cost ?? 0) > 0 || (second?.cost ?? 0) > 0) && (
            <Pair
              differs={differs('cost')}
              first={first && <CostOf {...first} />}
              second={second && <CostOf {...second} />}
            />
          )}
        </span>
      </summary>
      {open && (
        <div className="px-3 pt-1 pb-4">
          <NodeDifference ids={ids} node={node} />
        </div>
      )}
    </details>
  )
}

const CostOf = ({ cost }: { cost: number | null }) => text.costs(knownCost(cost, useSession().session.currency))

/** A value of each execution; one where they do not differ or one of them has none. */
const Pair = ({ first, second, differs }: { first: ReactNode; second: ReactNode; differs: boolean }) =>
  differs ? (
    <span className="bg-warning-soft text-warning inline-flex flex-wrap items-center gap-1 rounded px-1">
      {first}
      <span aria-hidden>→</span>
      <span className="sr-only">{text.inFirst}</span>
      {second}
      <span className="sr-only">{text.inSecond}</span>
    </span>
  ) : (
    <span className="text-muted">{first ?? second}</span>
  )
