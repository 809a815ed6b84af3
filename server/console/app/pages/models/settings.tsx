import { Queried } from '../../components/page.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { modelsText } from '../../text/models.ts'
import { useModelDetail } from './engines.tsx'
import { type Setting, settingsOf } from './settings-of.ts'

const columns: readonly Column<Setting>[] = [
  { name: modelsText.settingColumns.key, show: ({ key }) => <code className="font-mono">{key}</code> },
  {
    name: modelsText.settingColumns.value,
    show: ({ value }) => <code className="font-mono break-all">{value}</code>,
  },
]

/** The settings of a model. */
export function Settings({ id }: { id: string }) {
  const query = useModelDetail(id)
  return (
    <>
      <p className="text-muted mb-3">{modelsText.settingsAbout}</p>
      <Queried query={query} lines={8}>
        {({ settings }) => (
          <Table
            label={modelsText.details.settings}
            columns={columns}
            rows={settingsOf(settings)}
            rowKey={({ key }) => key}
          />
        )}
      </Queried>
    </>
  )
}
