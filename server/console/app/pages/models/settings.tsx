import { Queried } from '../../components/queried.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { modelsText } from '../../text/models.ts'
import { useModelDetail } from './engines.tsx'

interface Setting {
  key: string
  value: string
}

const columns: readonly Column<Setting>[] = [
  { name: modelsText.settingColumns.key, show: ({ key }) => <code className="font-mono">{key}</code> },
  {
    name: modelsText.settingColumns.value,
    show: ({ value }) => <code className="font-mono break-all">{value}</code>,
  },
]

/** Returns the settings that have a value, those of a group by their path: `sampling.temperature`. */
export function settingsOf(settings: Readonly<Record<string, unknown>>, before = ''): Setting[] {
  return Object.entries(settings).flatMap(([name, value]) => {
    const key = `${before}${name}`
    if (value === null || value === undefined) return []
    if (Array.isArray(value))
      return value.length === 0 ? [] : [{ key, value: value.map(one => textOf(one)).join(', ') }]
    if (typeof value === 'object') return settingsOf(value as Record<string, unknown>, `${key}.`)
    return [{ key, value: textOf(value) }]
  })
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

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
