import { api, dataOf, send } from '../../api/client.ts'
import { downloadText } from '../../components/download.ts'
import { type Group, groupBy, type Period, type Report, reportWindow } from './report.ts'

interface Request {
  organization: string
  period: Period
  by: Group
}

/** Pages that are read at most: 20 × 31 buckets or more than 10,000 groups are for the CSV. */
const maxPages = 20

const groupOf = (by: Group) => (by in groupBy ? [groupBy[by as keyof typeof groupBy]] : undefined)

/** Reads all pages of a report. `has_more` stays true if there are too many. */
export async function readReport({ organization, period, by }: Request): Promise<Report> {
  const { start, width } = reportWindow(period, Date.now())
  let whole: Report | undefined
  for (let at = 0; at < maxPages; at++) {
    const query = { start_time: start, bucket_width: width, group_by: groupOf(by), page: whole?.next_page ?? undefined }
    const params = { path: { organization }, query }
    const page = (await dataOf(api.GET('/api/organizations/{organization}/usage', { params }))) as Report
    whole = { ...page, buckets: [...(whole?.buckets ?? []), ...page.buckets] }
    if (!page.has_more) break
  }
  return whole!
}

/** Lets the browser save the report as CSV. */
export async function downloadCsv({ organization, period, by }: Request): Promise<void> {
  const { start, width } = reportWindow(period, Date.now())
  const query = new URLSearchParams({ start_time: String(start), bucket_width: width, format: 'csv' })
  for (const name of groupOf(by) ?? []) query.append('group_by', name)
  const answer = await send(`/api/organizations/${encodeURIComponent(organization)}/usage?${query}`)
  downloadText(`usage-${organization}.csv`, await answer.text(), 'text/csv')
}
