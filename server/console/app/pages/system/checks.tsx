import { api, type Schema } from '../../api/client.ts'
import { useAnswer } from '../../api/queries.ts'
import { Badge } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { Empty, Failed, Notice } from '../../components/page.tsx'
import { Time } from '../../components/time.tsx'
import { systemText } from '../../text/system.ts'

type Finding = Schema<'DoctorReport'>['findings'][number]

const kinds = { fine: 'good', warning: 'warning', broken: 'bad' } as const
const order: readonly Finding['state'][] = ['broken', 'warning', 'fine']

/** The checks of `infer doctor`, run when a person asks for them. What needs attention comes first. */
export function Checks() {
  const { data, error, isFetching, refetch } = useAnswer(['system', 'doctor'], () => api.GET('/api/system/doctor'), {
    enabled: false,
    gcTime: Number.POSITIVE_INFINITY,
  })
  const button = (text: string) => (
    <Button primary busy={isFetching} onClick={() => void refetch()}>
      {text}
    </Button>
  )
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

function FindingRow({ finding: { name, state, detail, advice } }: { finding: Finding }) {
  return (
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
}
