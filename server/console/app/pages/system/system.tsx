import { useLocation, useParams } from 'wouter'
import { api, type Schema, useAnswer, useMachine, useSession } from '../../api/client.ts'
import { Badge } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { CopyText } from '../../components/code.tsx'
import { serverText, sizeText } from '../../components/format.ts'
import { LogView } from '../../components/log/log-view.tsx'
import { Empty, Failed, Notice, PageHeading, Queried } from '../../components/page.tsx'
import { type Column, columnsOf, Table } from '../../components/table.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { Time } from '../../components/time.tsx'
import { shellText } from '../../text/shell.ts'
import { systemText } from '../../text/system.ts'
import { Configuration } from './configuration.tsx'
import { Licenses } from './licenses.tsx'

const parts = {
  checks: Checks,
  configuration: Configuration,
  log: () => <LogView name={systemText.server} source="server" />,
  backups: Backups,
  licenses: Licenses,
}
const all = Object.keys(parts) as (keyof typeof parts)[]

export default function SystemPage() {
  const { session } = useSession()
  const { '*': path = '' } = useParams()
  const [, go] = useLocation()
  const offered = session.owns_machine ? all : (['licenses'] as const)
  const current = offered.find(part => part === path) ?? offered[0]
  const Content = parts[current]
  return (
    <>
      {session.owns_machine ? <Summary /> : <PageHeading title={shellText.pages.system} about={systemText.ownOnly} />}
      <Tabs
        label={systemText.tabs}
        names={systemText}
        offered={offered}
        current={current}
        choose={id => go(`/system/${id}`)}
      >
        <Content />
      </Tabs>
    </>
  )
}

function Summary() {
  const { data } = useMachine({ refetchInterval: 60_000 })
  return <PageHeading title={shellText.pages.system} about={data ? serverText(data) : '\u00a0'} />
}

type Finding = Schema<'DoctorReport'>['findings'][number]

const kinds = { fine: 'good', warning: 'warning', broken: 'bad' } as const
const order: readonly Finding['state'][] = ['broken', 'warning', 'fine']

/** The checks of `infer doctor`, run when a person asks for them. What needs attention comes first. */
function Checks() {
  const { data, error, isFetching, refetch } = useAnswer(['system', 'doctor'], () => api.GET('/api/system/doctor'), {
    enabled: false,
    gcTime: Number.POSITIVE_INFINITY,
  })
  const button = (text: string) => <Button primary busy={isFetching} onClick={() => void refetch()} label={text} />
  return (
    <div className="space-y-4">
      {error && !isFetching && <Failed failure={error} />}
      {isFetching && <Notice kind="info">{systemText.checking}</Notice>}
      {data ? (
        <>
          <div className="flex flex-wrap items-center gap-3">
            <p className="flex-1 font-medium">
              {systemText.verdict(count(data.findings, 'broken'), count(data.findings, 'warning'))}{' '}
              <span className="text-muted font-normal">
                {systemText.checkedAt} <Time at={data.checked_at} />
              </span>
            </p>
            {button(systemText.checkAgain)}
          </div>
          <ul className="border-line bg-surface divide-line divide-y rounded-lg border">
            {order
              .flatMap(state => data.findings.filter(finding => finding.state === state))
              .map(finding => (
                <FindingRow key={finding.name} finding={finding} />
              ))}
          </ul>
        </>
      ) : (
        <Empty title={systemText.checkTitle}>
          <p className="max-w-xl">{systemText.checkNext}</p>
          {button(systemText.check)}
        </Empty>
      )}
    </div>
  )
}

const count = (findings: readonly Finding[], state: Finding['state']): number =>
  findings.filter(finding => finding.state === state).length

const FindingRow = ({ finding: { name, state, detail, advice } }: { finding: Finding }) => (
  <li className="grid gap-x-4 gap-y-1 px-3 py-2 md:grid-cols-[5rem_11rem_1fr]">
    <span>
      <Badge kind={kinds[state]}>{systemText.states[state]}</Badge>
    </span>
    <span className="font-medium">{name}</span>
    <span className="min-w-0 break-words">
      {detail}
      {advice !== null && <span className="text-muted mt-0.5 block">→ {advice}</span>}
    </span>
  </li>
)

const columns: readonly Column<Schema<'BackupList'>['data'][number]>[] = columnsOf(systemText.backupColumns, {
  file: ({ path }) => <span className="break-all">{path.slice(path.lastIndexOf('/') + 1)}</span>,
  size: { number: true, show: ({ bytes }) => sizeText(bytes) },
  when: ({ modified_at: at }) => <Time at={at} />,
})

/** The backups that the server keeps, and how to make and use one. */
function Backups() {
  const query = useAnswer(['system', 'backups'], () => api.GET('/api/system/backups'))
  return (
    <Queried query={query}>
      {({ folder, data }) =>
        data.length === 0 ? (
          <Empty title={systemText.noBackups}>
            <p>{systemText.backupNext}</p>
            <CopyText>{systemText.backupCommand}</CopyText>
          </Empty>
        ) : (
          <div className="space-y-3">
            <p className="text-muted break-all">{systemText.folder(folder)}</p>
            <Table label={systemText.backups} columns={columns} rows={data} rowKey="path" />
            <p>
              {systemText.backupMore} <CopyText>{systemText.backupCommand}</CopyText>
            </p>
            <p className="break-all">
              {systemText.restoreMore} <CopyText>{systemText.restoreCommand(data[0]!.path)}</CopyText>
            </p>
          </div>
        )
      }
    </Queried>
  )
}
