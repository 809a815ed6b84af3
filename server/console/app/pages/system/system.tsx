import { useLocation, useParams } from 'wouter'
import { api, useSession } from '../../api/client.ts'
import { useAnswer } from '../../api/queries.ts'
import { durationText } from '../../components/format.ts'
import { LogView } from '../../components/log/log-view.tsx'
import { PageHeading } from '../../components/page.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { shellText } from '../../text/shell.ts'
import { systemText } from '../../text/system.ts'
import { Backups } from './backups.tsx'
import { Checks } from './checks.tsx'
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
      {session.owns_machine ? (
        <Summary />
      ) : (
        <PageHeading title={shellText.pages.system}>{systemText.ownOnly}</PageHeading>
      )}
      <Tabs
        label={systemText.tabs}
        tabs={offered.map(id => ({ id, name: systemText[id] }))}
        current={current}
        choose={id => go(`/system/${id}`)}
      >
        <Content />
      </Tabs>
    </>
  )
}

function Summary() {
  const { data } = useAnswer(['system', 'status'], () => api.GET('/api/system/status'), { refetchInterval: 60_000 })
  return (
    <PageHeading title={shellText.pages.system}>
      {data
        ? systemText.summary(data.version, durationText(Math.max(0, data.time - data.started_at) * 1_000))
        : '\u00a0'}
    </PageHeading>
  )
}
