import { PageHeading } from '../../components/page-heading.tsx'
import { shellText } from '../../text/shell.ts'

export default function Overview() {
  return <PageHeading title={shellText.pages.overview} />
}
