declare const hljs: {
  registerLanguage(name: string, grammar: unknown): void
  getLanguage(name: string): unknown
  highlight(
    code: string,
    options: { language: string; ignoreIllegals: boolean },
  ): { _emitter: { rootNode: { children: Array<string | { scope?: string; children: any[] }> } } }
}
export default hljs
