import { api, type Schema } from '../../api/client.ts'
import { useAnswer } from '../../api/queries.ts'
import { CopyText } from '../../components/code.tsx'
import { sizeText } from '../../components/format.ts'
import { Empty, Queried } from '../../components/page.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time.tsx'
import { systemText } from '../../text/system.ts'

const { backupColumns: names } = systemText

const columns: readonly Column<Schema<'BackupList'>['data'][number]>[] = [
  { name: names.file, show: ({ path }) => <span className="break-all">{path.slice(path.lastIndexOf('/') + 1)}</span> },
  { name: names.size, number: true, show: ({ bytes }) => sizeText(bytes) },
  { name: names.when, show: ({ modified_at: at }) => <Time at={at} /> },
]

/** The backups that the server keeps, and how to make and use one. */
export function Backups() {
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
            <Table label={systemText.backups} columns={columns} rows={data} rowKey={({ path }) => path} />
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
