export interface Token {
  level: number
  nesting: number
  map: [number, number] | null
  info: string
  content: string
  attrGet(name: string): string | null
}
export default class MarkdownIt {
  constructor(options: Record<string, unknown>)
  validateLink: (url: string) => boolean
  utils: { escapeHtml(text: string): string }
  renderer: { rules: Record<string, (tokens: Token[], index: number) => string> }
  parse(text: string, env: object): Token[]
  render(text: string): string
}
